// Token and position embedding, and its gradient. Unit of a team: one row of x, or one row of a table.
#pragma once

#include "kernels/ops.h"

namespace millrace {

/// `row` counts the tokens of all replicas: [S][B][T].
template <class Team, class P>
MILLRACE_HOST_DEVICE void embedding_forward_row(const Team& team, const EmbeddingForward<P>& op, int row) {
    using Real = typename P::Real;
    const int tokens = op.extent.tokens;
    const int sequence = row / tokens;
    const int t = row - sequence * tokens;
    const auto width = static_cast<std::size_t>(op.width);
    const std::size_t replica = static_cast<std::size_t>(sequence / op.extent.sequences) * op.parameter_stride;
    const Token token = op.tokens[static_cast<std::size_t>(sequence) * op.token_stride + static_cast<std::size_t>(t)];
    const Real* __restrict from_token = op.token_table + replica + static_cast<std::size_t>(token) * width;
    const Real* __restrict from_position =
        op.position_table + replica + static_cast<std::size_t>(op.first_position + t) * width;
    Real* __restrict x = op.x + static_cast<std::size_t>(row) * width;
    for (int i = team.lane(); i < op.width; i += Team::width) {
        x[i] = from_token[i] + from_position[i];
    }
}

/// Gradient of row `index` of all token tables, [S][V]: the sum of dx wherever the token stands, in order.
template <class Team, class P>
MILLRACE_HOST_DEVICE void embedding_token_gradient_row(const Team& team, const EmbeddingBackward<P>& op, int index) {
    using Real = typename P::Real;
    const int replica = index / op.vocabulary;
    const Token token = index - replica * op.vocabulary;
    const auto width = static_cast<std::size_t>(op.width);
    Real* __restrict gradient = op.token_gradient + static_cast<std::size_t>(replica) * op.gradient_stride +
                                static_cast<std::size_t>(token) * width;
    for (int i = team.lane(); i < op.width; i += Team::width) {
        gradient[i] = Real(0);
    }
    const int first_sequence = replica * op.extent.sequences;
    for (int sequence = first_sequence; sequence < first_sequence + op.extent.sequences; ++sequence) {
        const Token* tokens = op.tokens + static_cast<std::size_t>(sequence) * op.token_stride;
        for (int t = 0; t < op.extent.tokens; ++t) {
            if (tokens[t] != token) {
                continue;
            }
            const Real* __restrict dx = op.dx + static_cast<std::size_t>(sequence * op.extent.tokens + t) * width;
            for (int i = team.lane(); i < op.width; i += Team::width) {
                gradient[i] += dx[i];
            }
        }
    }
}

/// Gradient of row `index` of all position tables, [S][context]: the sum of dx at that position, in order.
template <class Team, class P>
MILLRACE_HOST_DEVICE void embedding_position_gradient_row(const Team& team, const EmbeddingBackward<P>& op, int index) {
    using Real = typename P::Real;
    const int replica = index / op.context;
    const int position = index - replica * op.context;
    const auto width = static_cast<std::size_t>(op.width);
    Real* __restrict gradient = op.position_gradient + static_cast<std::size_t>(replica) * op.gradient_stride +
                                static_cast<std::size_t>(position) * width;
    for (int i = team.lane(); i < op.width; i += Team::width) {
        gradient[i] = Real(0);
    }
    if (position >= op.extent.tokens) {
        return;
    }
    const int first_sequence = replica * op.extent.sequences;
    for (int sequence = first_sequence; sequence < first_sequence + op.extent.sequences; ++sequence) {
        const Real* __restrict dx = op.dx + static_cast<std::size_t>(sequence * op.extent.tokens + position) * width;
        for (int i = team.lane(); i < op.width; i += Team::width) {
            gradient[i] += dx[i];
        }
    }
}

}  // namespace millrace
