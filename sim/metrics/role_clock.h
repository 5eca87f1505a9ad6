// How the members of a role (the workers, the trainers) spend their time, by state.
//
// Every member is in exactly one state, so the times of a role's states add up to members x elapsed, to the nanosecond.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/engine/time.h"

namespace millrace {

template <typename State, std::size_t states>
class RoleClock {
   public:
    RoleClock(std::int64_t members, State initial) { members_[index(initial)] = members; }

    /// One member changes state at `now`.
    void move(Time now, State from, State to) { move(now, from, to, 1); }
    /// All members that are in `from` change to `to` at `now`.
    void move_all(Time now, State from, State to) { move(now, from, to, members_[index(from)]); }

    std::int64_t members(State state) const { return members_[index(state)]; }

    /// Member-nanoseconds spent in each state up to `now`.
    std::array<Int128, states> spent_ns(Time now) const {
        auto spent = spent_ns_;
        for (std::size_t state = 0; state < states; ++state) {
            spent[state] += static_cast<Int128>(members_[state]) * (now - last_).ns;
        }
        return spent;
    }

   private:
    static constexpr std::size_t index(State state) { return static_cast<std::size_t>(state); }

    void move(Time now, State from, State to, std::int64_t count) {
        if (now != last_) {
            spent_ns_ = spent_ns(now);
            last_ = now;
        }
        members_[index(from)] -= count;
        members_[index(to)] += count;
    }

    std::array<std::int64_t, states> members_{};
    std::array<Int128, states> spent_ns_{};
    Time last_;
};

enum class WorkerState : std::size_t {
    busy,     ///< generates
    paused,   ///< takes new weights in place
    blocked,  ///< empty, because finished rollouts wait for room in the store
    starved   ///< empty, because admission lets nothing start
};
using WorkerClock = RoleClock<WorkerState, 4>;

enum class TrainerState : std::size_t {
    busy,     ///< computes an update
    waiting,  ///< for rollouts
    stalled   ///< until the workers have its weights
};
using TrainerClock = RoleClock<TrainerState, 3>;

}  // namespace millrace
