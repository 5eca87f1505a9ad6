// What passes through a station: enough to check Little's law and the conservation of rollouts on it.
#pragma once

#include <cstdint>

#include "sim/engine/time.h"

namespace millrace {

class StationFlow {
   public:
    void enter(Time now, std::int64_t rollouts = 1) {
        entered_ += rollouts;
        entry_times_ += static_cast<Int128>(rollouts) * now.ns;
    }
    /// A rollout leaves that came in at `since`.
    void leave(Time now, Time since) {
        ++left_;
        exit_times_ += now.ns;
        sojourn_ns_ += (now - since).ns;
    }

    std::int64_t entered() const { return entered_; }
    std::int64_t left() const { return left_; }
    std::int64_t present() const { return entered_ - left_; }
    /// Sum over the rollouts that left of the time they spent here, in seconds.
    double sojourn_s() const { return static_cast<double>(sojourn_ns_) * 1e-9; }
    /// Integral over time of the number present up to `now`, in rollout seconds: a rollout contributes the time from
    /// its entry to its exit, or to now.
    double presence_s(Time now) const {
        return static_cast<double>(exit_times_ - entry_times_ + static_cast<Int128>(present()) * now.ns) * 1e-9;
    }

   private:
    std::int64_t entered_ = 0;
    std::int64_t left_ = 0;
    Int128 entry_times_ = 0;
    Int128 exit_times_ = 0;
    Int128 sojourn_ns_ = 0;
};

}  // namespace millrace
