// The reward stage: grades rollouts, first come first served, on a number of servers or all at once.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/engine/random.h"
#include "sim/engine/time.h"
#include "sim/pipeline/config.h"
#include "sim/pipeline/growing_ring.h"
#include "sim/pipeline/rollout.h"

namespace millrace {

class RewardStage {
   public:
    RewardStage(const RewardConfig& config, std::uint64_t seed, std::uint64_t replication);

    /// Whether grading takes no time at all, so that rollouts need not come here.
    bool instant() const { return instant_; }

    struct Started {
        RolloutIndex rollout = 0;
        Duration takes;
    };

    /// A rollout arrives; the grading that begins because of it, if any does.
    std::optional<Started> arrive(RolloutIndex rollout, std::uint64_t id);
    /// A grading has ended; the one that begins in its place, if anything waits.
    std::optional<Started> finish();

    std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }

   private:
    struct Waiting {
        RolloutIndex rollout = 0;
        std::uint64_t id = 0;
    };
    Started start(Waiting rollout) const;

    Distribution latency_s_;
    bool instant_;
    RandomStream stream_;
    std::optional<std::int64_t> idle_servers_;  ///< none: unlimited
    GrowingRing<Waiting> waiting_;
};

}  // namespace millrace
