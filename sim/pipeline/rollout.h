// One rollout as the timing model sees it, and the slab that holds all living ones.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/engine/time.h"

namespace millrace {

/// Position in the RolloutPool. Reused after release: it orders nothing and never leaves the pipeline.
using RolloutIndex = std::uint32_t;

/// Versions are counts of updates; a run makes fewer than 2^31. The fields share one cache line.
struct alignas(64) Rollout {
    std::uint64_t id = 0;     ///< how many rollouts were started before it
    Time entered;             ///< when it came, or will come, to the station where it is now, or is next
    Duration grading;         ///< how long a server of the reward stage works on it
    std::int64_t tokens = 0;  ///< prompt and response
    std::uint32_t group = 0;
    std::int32_t version_started = 0;  ///< policy version of its first token: staleness counts from here
    std::int32_t version_group = 0;    ///< of the first token of its group
    std::int32_t version_stored = 0;   ///< newest version that existed when it entered the store
    std::int32_t last_used = -1;       ///< version the update that last used it started from; -1: never used
    std::int32_t uses = 0;
    std::int32_t uses_in_batch = 0;  ///< by the update `last_used`
    bool correct = false;
    bool generated = false;
};
static_assert(sizeof(Rollout) <= 64);

class RolloutPool {
   public:
    void reserve(std::size_t rollouts) {
        rollouts_.reserve(rollouts);
        free_.reserve(rollouts);
    }

    RolloutIndex acquire() {
        if (free_.empty()) {
            rollouts_.emplace_back();
            return static_cast<RolloutIndex>(rollouts_.size() - 1);
        }
        const RolloutIndex index = free_.back();
        free_.pop_back();
        std::construct_at(&rollouts_[index]);  // in place; compilers assign a Rollout{} by way of the stack
        return index;
    }

    void release(RolloutIndex index) { free_.push_back(index); }

    Rollout& operator[](RolloutIndex index) { return rollouts_[index]; }
    const Rollout& operator[](RolloutIndex index) const { return rollouts_[index]; }

    std::size_t living() const { return rollouts_.size() - free_.size(); }

   private:
    std::vector<Rollout> rollouts_;
    std::vector<RolloutIndex> free_;
};

}  // namespace millrace
