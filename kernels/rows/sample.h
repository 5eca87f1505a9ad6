// Drawing a token from the softmax of logits. Unit of a team: one sequence.
#pragma once

#include "kernels/math.h"
#include "kernels/ops.h"
#include "kernels/random.h"

namespace millrace {

/// `index` counts the sequences of all replicas: [S][B]. Every lane goes through the whole vocabulary in order, so that
/// teams of any width choose the same token; a vocabulary here is smaller than a warp.
template <class Team, class P>
MILLRACE_HOST_DEVICE void sample_sequence(const Team& team, const Sample<P>& op, int index) {
    using Real = typename P::Real;
    const auto sequence = static_cast<std::size_t>(index);
    const bool ended = op.ended[index] != 0;
    team.sync();  // before lane 0 may set it
    if (ended) {
        if (team.lane() == 0) {
            op.token[sequence * op.token_stride] = op.rule.pad;
            op.log_probability[sequence * op.log_probability_stride] = Real(0);
        }
        return;
    }
    const Real* logits = op.logits + sequence * static_cast<std::size_t>(op.vocabulary);
    Token best = 0;
    for (int v = 1; v < op.vocabulary; ++v) {
        best = logits[v] > logits[best] ? v : best;
    }
    const Real highest = logits[best];
    const Real inverse_temperature = Real(1) / static_cast<Real>(op.rule.temperature);
    Real total = Real(0);
    for (int v = 0; v < op.vocabulary; ++v) {
        total = in_order(total + exp_of((logits[v] - highest) * inverse_temperature));
    }
    Token token = best;
    if (!op.rule.greedy) {
        const std::uint64_t seed = op.seed[index / op.extent.sequences];
        const Philox4x32 bits = learner_bits(seed, LearnerPurpose::sample_token, op.sequence_id[index],
                                             static_cast<std::uint32_t>(op.position));
        const Real threshold = static_cast<Real>(uniform_from(bits.word[0])) * total;
        // The first token whose cumulative weight exceeds the threshold. It has a weight of its own, so a token of
        // probability 0 is never drawn; the sum over all exceeds it because the uniform number is below 1.
        Real cumulative = Real(0);
        for (int v = 0; v < op.vocabulary; ++v) {
            cumulative = in_order(cumulative + exp_of((logits[v] - highest) * inverse_temperature));
            if (cumulative > threshold) {
                token = v;
                break;
            }
        }
    }
    if (team.lane() == 0) {
        op.token[sequence * op.token_stride] = token;
        op.log_probability[sequence * op.log_probability_stride] =
            (logits[token] - highest) * inverse_temperature - log_of(total);
        if (token == op.rule.end) {
            op.ended[index] = 1;
        }
    }
}

}  // namespace millrace
