// theta_0: the policy that reinforcement learning starts from.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "kernels/backend.h"
#include "model/rollout.h"
#include "model/shape.h"
#include "model/tasks/task.h"
#include "sim/scenario/learner_settings.h"

namespace millrace {

/// Weights of one replica, [P], and what they are called.
template <typename Real>
struct WarmStart {
    std::vector<Real> weights;
    std::uint64_t hash = 0;               ///< content_hash of the weights
    std::int64_t supervised_updates = 0;  ///< made for it; 0 when the weights came from a file
    double log_probability = 0.0;         ///< mean per answer token in the last supervised update; 0 from a file
};

/// Somebody did not want to wait for theta_0.
struct WarmStartStopped : std::runtime_error {
    WarmStartStopped() : std::runtime_error("The warm start was stopped.") {}
};

/// Makes theta_0 by supervised fine-tuning from initial weights on solutions written by the task, or reads it from the
/// checkpoint that the settings name: then replica 0's weights are taken. It depends on the settings only, not on any
/// seed of the reinforcement learning that follows.
/// Throws std::runtime_error when the checkpoint cannot be used or its weights do not have the hash that is asked for,
/// WarmStartStopped soon after `stop` has turned true.
template <typename P>
WarmStart<typename P::Real> warm_start(Backend<P>& backend, const LearnerSettings& settings,
                                       const std::atomic<bool>* stop = nullptr);

/// Example `index` of the supervised stream: a training prompt with its solution, the same for all replicas.
TaskRollout supervised_example(const Task& task, std::uint64_t seed, std::uint64_t index, int replicas = 1);

}  // namespace millrace
