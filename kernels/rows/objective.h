// From log-probabilities to the weight of every token's gradient. Unit of a team: one sequence.
#pragma once

#include "kernels/math.h"
#include "kernels/ops.h"

namespace millrace {

/// `sequence` counts those of all replicas: [S][B].
template <class Team, class P>
MILLRACE_HOST_DEVICE void objective_sequence(const Team& team, const Objective<P>& op, int sequence) {
    using Real = typename P::Real;
    const int tokens = op.extent.tokens;
    const int first = op.first_answer_row;
    const int wanted = op.answer_tokens[sequence];
    const int answer = wanted < tokens - first ? wanted : tokens - first;
    const bool supervised = op.rule.kind == ObjectiveKind::supervised;
    const std::size_t row = static_cast<std::size_t>(sequence) * static_cast<std::size_t>(tokens);
    const Real* log_probability = op.log_probability + row;
    const Real* old = supervised ? log_probability : op.old_log_probability + row;
    Real* weight = op.weight + row;
    const Real advantage = supervised ? Real(1) : op.advantage[sequence];
    const Real low = Real(1) - static_cast<Real>(op.rule.clip_low);
    const Real high = Real(1) + static_cast<Real>(op.rule.clip_high);
    const Real scale = static_cast<Real>(op.scale) / static_cast<Real>(answer > 0 ? answer : 1);

    Real log_ratio = Real(0);
    for (int t = first + team.lane(); t < first + answer; t += Team::width) {
        log_ratio += log_probability[t] - old[t];
    }
    log_ratio = team.sum(log_ratio);
    const Real sequence_ratio = exp_of(log_ratio);

    Real distance = Real(0);
    Real ratio_sum = Real(0);
    Real ratio_squares = Real(0);
    Real clipped = Real(0);
    Real entropy = Real(0);
    Real log_probabilities = Real(0);
    for (int t = team.lane(); t < tokens; t += Team::width) {
        if (t < first || t >= first + answer) {
            weight[t] = Real(0);
            continue;
        }
        const Real token_ratio = exp_of(log_probability[t] - old[t]);
        const Real ratio = op.rule.ratio == RatioKind::token ? token_ratio : sequence_ratio;
        Real slope = advantage;
        if (op.rule.kind == ObjectiveKind::grpo) {
            const bool outside = (advantage > Real(0) && ratio > high) || (advantage < Real(0) && ratio < low);
            slope = outside ? Real(0) : advantage * ratio;
            clipped += outside ? Real(1) : Real(0);
        } else if (op.rule.kind == ObjectiveKind::reinforce) {
            slope = advantage * ratio;
        }
        weight[t] = scale * slope;
        distance += token_ratio > Real(1) ? token_ratio - Real(1) : Real(1) - token_ratio;
        ratio_sum += token_ratio;
        ratio_squares += token_ratio * token_ratio;
        entropy += op.entropy != nullptr ? op.entropy[row + static_cast<std::size_t>(t)] : Real(0);
        log_probabilities += log_probability[t];
    }
    if (op.statistics == nullptr) {
        return;
    }
    distance = team.sum(distance);
    ratio_sum = team.sum(ratio_sum);
    ratio_squares = team.sum(ratio_squares);
    clipped = team.sum(clipped);
    entropy = team.sum(entropy);
    log_probabilities = team.sum(log_probabilities);
    if (team.lane() == 0) {
        Real* statistics = op.statistics + static_cast<std::size_t>(sequence) * sequence_statistics;
        statistics[stat_tokens] = static_cast<Real>(answer);
        statistics[stat_abs_ratio_minus_1] = distance;
        statistics[stat_ratio] = ratio_sum;
        statistics[stat_ratio_squared] = ratio_squares;
        statistics[stat_clipped] = clipped;
        statistics[stat_log_ratio] = log_ratio;
        statistics[stat_entropy] = entropy;
        statistics[stat_log_probability] = log_probabilities;
    }
}

}  // namespace millrace
