// What the tests of the learner share: small models with weights that make every part matter, and rollouts for them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backends.h"
#include "kernels/random.h"
#include "model/rollout.h"
#include "model/shape.h"
#include "model/task_learner.h"
#include "model/training.h"

namespace millrace::test {

/// Sorting three digits: a prompt of four tokens, an answer of four.
inline constexpr TaskSettings sort3{TaskKind::sort, 3};
inline constexpr ModelShape small_shape{
    .layers = 2, .width = 8, .heads = 2, .mlp_width = 12, .vocabulary = 20, .context = 9};
inline constexpr int small_prompt = 4;
inline constexpr int small_sequence = 8;

inline double uniform_number(std::uint64_t seed, std::uint64_t index) {
    return static_cast<double>(uniform_from(learner_bits(seed, LearnerPurpose::test, index).word[0]));
}

/// Weights of one replica; the gains differ from 1, the gaps stay 0.
template <typename Real>
std::vector<Real> test_weights(const ModelShape& shape, std::uint64_t seed) {
    const std::vector<double> initial = initial_weights(shape, seed);
    std::vector<Real> weights(initial.begin(), initial.end());
    for (const NamedParameter& parameter : named_parameters(shape)) {
        if (parameter.rows == 1) {
            for (std::size_t i = 0; i < parameter.size(); ++i) {
                weights[parameter.place + i] += static_cast<Real>(uniform_number(seed, parameter.place + i) - 0.5);
            }
        }
    }
    return weights;
}

/// `count` rollouts with random tokens, answers of 1 to 4 tokens, and whatever an objective may ask for.
inline std::vector<TaskRollout> random_rollouts(int count, int replicas, std::uint64_t seed) {
    std::vector<TaskRollout> rollouts(static_cast<std::size_t>(count));
    std::uint64_t draw = 0;
    const auto below = [&](int n) { return static_cast<std::int32_t>(uniform_number(seed, draw++) * n); };
    for (TaskRollout& rollout : rollouts) {
        for (int s = 0; s < replicas; ++s) {
            for (int t = 0; t < small_sequence; ++t) {
                rollout.tokens.push_back(below(small_shape.vocabulary));
            }
            rollout.answer_tokens.push_back(1 + below(small_sequence - small_prompt));
            for (int t = small_prompt; t < small_sequence; ++t) {
                rollout.log_probability.push_back(-3.0 - 0.3 * uniform_number(seed, draw++));
            }
            rollout.reward.push_back(below(2));
            rollout.advantage.push_back(2.0 * uniform_number(seed, draw++) - 1.0);
        }
    }
    return rollouts;
}

inline std::vector<const TaskRollout*> pointers_to(const std::vector<TaskRollout>& rollouts) {
    std::vector<const TaskRollout*> pointers;
    for (const TaskRollout& rollout : rollouts) {
        pointers.push_back(&rollout);
    }
    return pointers;
}

/// A learner's settings for which everything takes milliseconds.
inline LearnerSettings small_settings() {
    LearnerSettings settings;
    settings.task = sort3;
    settings.model = {.layers = 1, .width = 32, .heads = 2, .mlp_width = 64, .context = {}};
    settings.warm_start.updates = 60;
    settings.warm_start.optimizer.learning_rate = 4e-3;
    settings.warm_start.optimizer.warmup_updates = 20;
    settings.evaluation = {.every_updates = 5, .sampled_prompts = 16, .samples = 16, .greedy_prompts = 32};
    return settings;
}

}  // namespace millrace::test
