// How good a policy is, on prompts it was never trained on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/generation.h"
#include "model/tasks/task.h"
#include "sim/scenario/learner_settings.h"

namespace millrace {

struct Evaluation {
    double pass_at_1 = 0.0;            ///< share of correct answers sampled at temperature 1
    std::optional<double> pass_at_4;   ///< none when there are fewer than 4 samples of a prompt
    std::optional<double> pass_at_16;  ///< none when there are fewer than 16
    std::optional<double> greedy;      ///< share of correct greedy answers; none without greedy prompts
    double entropy = 0.0;              ///< nats per token of the sampled answers, estimated by the mean of -log p
    double answer_tokens = 0.0;        ///< mean length of the sampled answers, EOS included
};

/// Evaluates every replica of `weights`. The prompts are the first of the held-out stream and the random numbers are
/// those of `evaluation_seed`, the same for all replicas, at every update and in every run: what changes between two
/// evaluations is the policy.
inline constexpr std::uint64_t evaluation_seed = 0x6d696c6c72616365;  // "millrace"
template <typename P>
std::vector<Evaluation> evaluate(Generator<P>& generator, const Task& task, const EvaluationSettings& settings,
                                 const Weights<P>& weights);

}  // namespace millrace
