// What a rollout says: answers to prompts, as they are kept from its generation to the updates that use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/ops.h"

namespace millrace {

/// The policy version of a rollout that more than one has written.
inline constexpr std::int64_t written_by_several = -1;

/// A rollout of a learner with S replicas is S answers, one by each: the replicas share the times at which things
/// happen, but have prompts, answers and rewards of their own. Supervised examples are rollouts without
/// log-probabilities.
struct TaskRollout {
    /// Of the weights that wrote it. In an update from this very version the importance ratio is 1 by definition, and
    /// the log-probabilities below are not read; so whoever makes them up says `written_by_several`.
    std::int64_t policy_version = 0;
    std::vector<Token> tokens;                ///< [S][context]: prompt, answer, then whatever
    std::vector<std::int32_t> answer_tokens;  ///< [S], EOS included; all of the room when there was no EOS
    std::vector<double> log_probability;      ///< [S][answer room] at generation; beyond the answer unused
    std::vector<double> reward;               ///< [S]
    std::vector<double> advantage;            ///< [S]
};

}  // namespace millrace
