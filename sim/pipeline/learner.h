// The seam between the pipeline, which knows when things happen, and a learner, which knows what they come to.
//
// The pipeline tells which policy version writes each rollout and which rollouts each update uses; the learner writes
// them and makes the updates. Nothing that it does takes simulated time: durations come from the scenario's laws.
// Without a learner the pipeline draws lengths and rewards from distributions and needs nothing else.
#pragma once

#include <cstdint>
#include <span>

#include "sim/engine/time.h"

namespace millrace {

/// What a run has cost up to some moment.
struct ComputeSpent {
    Time at;
    double worker_active_gpu_s = 0.0;
    double trainer_active_gpu_s = 0.0;
    double reserved_gpu_s = 0.0;  ///< GPUs of both roles x wall time
};

class Learner {
   public:
    virtual ~Learner() = default;

    /// Rollout `id` begins, to be written by policy version `version`. Ids count up from 0, and the G of a group, which
    /// answer one prompt, follow each other.
    virtual void begin(std::uint64_t id, std::int32_t version) = 0;

    /// `version` writes the rest of a rollout of which the share `written`, in [0, 1), is there. Under the in-flight
    /// policy `in_place` only.
    virtual void switch_version(std::uint64_t id, std::int32_t version, double written) = 0;

    /// The rollout has its last token.
    virtual void finish(std::uint64_t id) = 0;

    /// Whether a finished rollout got its reward; asked when the store has to know.
    virtual bool correct(std::uint64_t id) = 0;

    /// Makes version `version` + 1 from `version` and these rollouts, in this order, some of them perhaps repeatedly.
    virtual void update(std::int32_t version, std::span<const std::uint64_t> batch) = 0;

    /// The simulated time has come at which `version` exists. False ends the run.
    virtual bool updated(std::int32_t version, const ComputeSpent& spent) = 0;

    /// No update will use the rollout any more.
    virtual void forget(std::uint64_t id) = 0;

    /// The policy versions, in ascending order, that workers have or are about to get. Rollouts that begin, or switch,
    /// do so with one of these, or with one that is made later.
    virtual void keep(std::span<const std::int32_t> versions) = 0;

    /// Whether updated() has ended the run before its time, which makes it one that was interrupted.
    virtual bool stopped() const { return false; }
};

}  // namespace millrace
