// Softmax over the vocabulary: log-probability, entropy and gradient of the logits. Unit of a team: one row.
#pragma once

#include "kernels/math.h"
#include "kernels/ops.h"

namespace millrace {

/// `row` counts tokens: [S][B][T].
template <class Team, class P>
MILLRACE_HOST_DEVICE void classifier_row(const Team& team, const Classifier<P>& op, int row) {
    using Real = typename P::Real;
    using Operand = typename P::Operand;
    const auto vocabulary = static_cast<std::size_t>(op.vocabulary);
    const Real* __restrict logits = op.logits + static_cast<std::size_t>(row) * vocabulary;
    const int sequence = row / op.extent.tokens;
    const int t = row - sequence * op.extent.tokens;
    const Token target =
        op.targets[static_cast<std::size_t>(sequence) * op.target_stride + static_cast<std::size_t>(t)];

    Real highest = logits[0];
    for (int v = team.lane(); v < op.vocabulary; v += Team::width) {
        highest = logits[v] > highest ? logits[v] : highest;
    }
    highest = team.max(highest);
    Real total = Real(0);
    Real weighted = Real(0);
    for (int v = team.lane(); v < op.vocabulary; v += Team::width) {
        const Real above = logits[v] - highest;
        const Real e = exp_of(above);
        total += e;
        weighted += e * above;
    }
    total = team.sum(total);
    weighted = team.sum(weighted);
    const Real log_total = log_of(total);
    if (team.lane() == 0) {
        if (op.log_probability != nullptr) {
            op.log_probability[row] = logits[target] - highest - log_total;
        }
        if (op.entropy != nullptr) {
            op.entropy[row] = log_total - weighted / total;
        }
    }
    if (op.dlogits != nullptr) {
        Operand* __restrict dlogits = op.dlogits + static_cast<std::size_t>(row) * vocabulary;
        const Real weight = op.weight[row];
        const Real factor = weight / total;
        for (int v = team.lane(); v < op.vocabulary; v += Team::width) {
            const Real hit = v == target ? weight : Real(0);
            dlogits[v] = store<Operand>(hit - factor * exp_of(logits[v] - highest));
        }
    }
}

}  // namespace millrace
