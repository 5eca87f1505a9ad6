// The reward stage: grades rollouts, first come first served, on a number of servers or all at once.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/engine/time.h"
#include "sim/pipeline/config.h"
#include "sim/pipeline/growing_ring.h"
#include "sim/pipeline/rollout.h"

namespace millrace {

class RewardStage {
   public:
    explicit RewardStage(const RewardConfig& config)
        : instant_(config.latency_s.maximum() == 0.0), unlimited_(!config.servers), idle_servers_(config.servers) {}

    /// Whether grading takes no time at all, so that rollouts need not come here.
    bool instant() const { return instant_; }

    /// Whether a rollout is graded at once when it arrives, so that the end of its grading is known then: nothing needs
    /// to come here, and a group takes one event instead of one per member.
    bool unlimited() const { return unlimited_; }

    struct Started {
        RolloutIndex rollout = 0;
        Duration takes;
    };

    /// A rollout arrives that a server works on for `takes`; the grading that begins because of it, if any does.
    std::optional<Started> arrive(RolloutIndex rollout, Duration takes) {
        if (idle_servers_) {
            if (*idle_servers_ == 0) {
                waiting_.push_back({rollout, takes});
                return std::nullopt;
            }
            --*idle_servers_;
        }
        return Started{rollout, takes};
    }
    /// A grading has ended; the one that begins in its place, if anything waits.
    std::optional<Started> finish() {
        if (!waiting_.empty()) {
            return waiting_.pop_front();
        }
        if (idle_servers_) {
            ++*idle_servers_;
        }
        return std::nullopt;
    }

   private:
    bool instant_;
    bool unlimited_;
    std::optional<std::int64_t> idle_servers_;  ///< none: unlimited
    GrowingRing<Started> waiting_;
};

}  // namespace millrace
