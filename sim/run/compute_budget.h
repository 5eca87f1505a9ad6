// Ends a simulated run as a learner does whose compute is spent, without learning anything.
#pragma once

#include "sim/pipeline/learner.h"

namespace millrace {

/// For passes that only ask how the timeline goes: which updates a run with a learner will make.
class ComputeBudget final : public Learner {
   public:
    /// `units` of active compute, each of `gpu_s_per_unit` GPU-seconds.
    ComputeBudget(double units, double gpu_s_per_unit) : gpu_s_(units * gpu_s_per_unit) {}

    bool updated(std::int32_t, const ComputeSpent& spent) override {
        return spent.worker_active_gpu_s + spent.trainer_active_gpu_s < gpu_s_;
    }
    /// Which rollouts are right decides what a buffer keeps, and nothing about time: every second one is.
    bool correct(std::uint64_t id) override { return id % 2 == 0; }

    void begin(std::uint64_t, std::int32_t) override {}
    void switch_version(std::uint64_t, std::int32_t, double) override {}
    void finish(std::uint64_t) override {}
    void update(std::int32_t, std::span<const std::uint64_t>) override {}
    void forget(std::uint64_t) override {}
    void keep(std::span<const std::int32_t>) override {}

   private:
    double gpu_s_;
};

}  // namespace millrace
