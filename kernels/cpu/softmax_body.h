// Classifier and sampling of one row on the CPU, in vectors; the shared bodies are kernels/rows/classifier.h and
// kernels/rows/sample.h. A row is copied to where it can be read to a multiple of the vector's length.
#pragma once

#include <limits>

#include "kernels/cpu/vector.h"
#include "kernels/ops.h"
#include "kernels/random.h"

namespace millrace {

/// A row of logits less their maximum, and their exponentials.
template <typename Real>
struct PaddedRow {
    static constexpr int lanes = native_lanes<Real>;
    static constexpr int most = 256;  ///< vocabularies beyond it are left to the shared bodies

    alignas(64) Real above[most];
    alignas(64) Real weight[most];
    int blocks = 0;  ///< numbers, a multiple of `lanes`
    Real highest = 0;

    /// What is behind the vocabulary weighs nothing. Logits are multiplied by `factor`.
    void set(const Real* __restrict logits, int vocabulary, Real factor) {
        using V = Vector<Real, lanes>;
        blocks = (vocabulary + lanes - 1) / lanes * lanes;
        V top = splat<lanes>(-std::numeric_limits<Real>::infinity());
        store_vector(above + blocks - lanes, top);
        int v = 0;
        for (; v + lanes <= vocabulary; v += lanes) {
            store_vector(above + v, load_vector<lanes>(logits + v));
        }
        for (; v < vocabulary; ++v) {
            above[v] = logits[v];
        }
        for (int b = 0; b < blocks; b += lanes) {
            top = larger<Real, lanes>(top, load_vector<lanes>(above + b));
        }
        highest = largest_lane<Real, lanes>(top);
        for (int b = 0; b < blocks; b += lanes) {
            const V x = (load_vector<lanes>(above + b) - highest) * factor;
            store_vector(above + b, x);
            store_vector(weight + b, exp_of_nonpositive<lanes>(x));
        }
    }
};

template <typename P>
void classifier_row_in_vectors(const Classifier<P>& op, int row) {
    using Real = typename P::Real;
    constexpr int N = native_lanes<Real>;
    using V = Vector<Real, N>;
    PaddedRow<Real> padded;
    const std::size_t first = static_cast<std::size_t>(row) * static_cast<std::size_t>(op.vocabulary);
    padded.set(op.logits + first, op.vocabulary, Real(1));
    const auto sequence = static_cast<std::size_t>(row / op.extent.tokens);
    const auto t = static_cast<std::size_t>(row % op.extent.tokens);
    const Token target = op.targets[sequence * op.target_stride + t];

    V total_lanes{};
    V weighted_lanes{};
    for (int b = 0; b < padded.blocks; b += N) {
        const V weight = load_vector<N>(padded.weight + b);
        // 0 times minus infinity, behind the vocabulary, is to be 0.
        const V above = load_vector<N>(padded.above + b);
        total_lanes += weight;
        weighted_lanes += weight > Real(0) ? weight * above : V{};
    }
    const Real total = sum_of_lanes<Real, N>(total_lanes);
    const Real log_total = log_of(total);
    if (op.log_probability != nullptr) {
        op.log_probability[row] = padded.above[target] - log_total;
    }
    if (op.entropy != nullptr) {
        op.entropy[row] = log_total - sum_of_lanes<Real, N>(weighted_lanes) / total;
    }
    if (op.dlogits != nullptr) {
        Real* __restrict dlogits = op.dlogits + first;
        const Real factor = -op.weight[row] / total;
        int v = 0;
        for (; v + N <= op.vocabulary; v += N) {
            store_vector(dlogits + v, load_vector<N>(padded.weight + v) * factor);
        }
        for (; v < op.vocabulary; ++v) {
            dlogits[v] = padded.weight[v] * factor;
        }
        dlogits[target] += op.weight[row];
    }
}

template <typename P>
void sample_in_vectors(const Sample<P>& op, int index) {
    using Real = typename P::Real;
    const auto sequence = static_cast<std::size_t>(index);
    Token& token = op.token[sequence * op.token_stride];
    Real& log_probability = op.log_probability[sequence * op.log_probability_stride];
    if (op.ended[index] != 0) {
        token = op.rule.pad;
        log_probability = Real(0);
        return;
    }
    PaddedRow<Real> padded;
    const Real* logits = op.logits + sequence * static_cast<std::size_t>(op.vocabulary);
    padded.set(logits, op.vocabulary, Real(1) / static_cast<Real>(op.rule.temperature));
    // Sums in the order of the vocabulary, as the shared body has them.
    Real cumulative[PaddedRow<Real>::most];
    Real total = Real(0);
    for (int v = 0; v < op.vocabulary; ++v) {
        total = in_order(total + padded.weight[v]);
        cumulative[v] = total;
    }
    Token chosen = 0;
    if (op.rule.greedy) {
        while (chosen + 1 < op.vocabulary && logits[chosen] != padded.highest) {
            ++chosen;
        }
    } else {
        const Philox4x32 bits = learner_bits(op.seed[index / op.extent.sequences], LearnerPurpose::sample_token,
                                             op.sequence_id[index], static_cast<std::uint32_t>(op.position));
        const Real threshold = static_cast<Real>(uniform_from(bits.word[0])) * total;
        // How many cumulative weights do not exceed the threshold: without a branch that nobody can foresee.
        for (int v = 0; v + 1 < op.vocabulary; ++v) {
            chosen += cumulative[v] <= threshold ? 1 : 0;
        }
    }
    token = chosen;
    log_probability = padded.above[chosen] - log_of(total);
    if (chosen == op.rule.end) {
        op.ended[index] = 1;
    }
}

}  // namespace millrace
