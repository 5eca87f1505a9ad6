// Causal attention of all heads. Unit of a team: one head of one sequence, in the training forward one query of it.
#pragma once

#include "kernels/math.h"
#include "kernels/ops.h"

namespace millrace {

/// Softmax over `keys` keys of the scores of one query, times `scale`, and the mean of the values under it.
/// Key j and value j are `stride` after key j - 1 and value j - 1. Leaves the probabilities, rounded as the products
/// see them, in `probabilities`.
template <class Team, class P>
MILLRACE_HOST_DEVICE void attend(const Team& team, const typename P::Operand* query, const typename P::Operand* key,
                                 const typename P::Operand* value, std::size_t stride, int keys, int head_width,
                                 typename P::Operand* probabilities, typename P::Operand* y) {
    using Real = typename P::Real;
    using Operand = typename P::Operand;
    const Real scale = Real(1) / sqrt_of(static_cast<Real>(head_width));
    const auto score = [&](int j) {
        const Operand* k = key + static_cast<std::size_t>(j) * stride;
        Real sum = Real(0);
        for (int i = 0; i < head_width; ++i) {
            sum += load<Real>(query[i]) * load<Real>(k[i]);
        }
        return sum * scale;
    };
    // Scores are computed twice rather than kept: an operand could not hold them without loss.
    Real highest = score(0);
    for (int j = team.lane(); j < keys; j += Team::width) {
        const Real s = score(j);
        highest = s > highest ? s : highest;
    }
    highest = team.max(highest);
    Real total = Real(0);
    for (int j = team.lane(); j < keys; j += Team::width) {
        total += exp_of(score(j) - highest);
    }
    const Real inverse = Real(1) / team.sum(total);
    for (int j = team.lane(); j < keys; j += Team::width) {
        probabilities[j] = store<Operand>(exp_of(score(j) - highest) * inverse);
    }
    team.sync();
    for (int i = team.lane(); i < head_width; i += Team::width) {
        Real sum = Real(0);
        for (int j = 0; j < keys; ++j) {
            sum += load<Real>(probabilities[j]) *
                   load<Real>(value[static_cast<std::size_t>(j) * stride + static_cast<std::size_t>(i)]);
        }
        y[i] = store<Operand>(sum);
    }
}

/// `query` counts the queries of all heads and sequences: [S][B][H][T].
template <class Team, class P>
MILLRACE_HOST_DEVICE void attention_forward_query(const Team& team, const AttentionForward<P>& op, int query) {
    const int tokens = op.extent.tokens;
    const int head_width = op.width / op.heads;
    const int t = query % tokens;
    const int head = query / tokens % op.heads;
    const int sequence = query / tokens / op.heads;
    const auto width = static_cast<std::size_t>(op.width);
    const std::size_t first_row = static_cast<std::size_t>(sequence) * static_cast<std::size_t>(tokens);
    const auto row = first_row + static_cast<std::size_t>(t);
    const std::size_t in_row = static_cast<std::size_t>(head) * static_cast<std::size_t>(head_width);
    const typename P::Operand* first = op.qkv + first_row * 3 * width + in_row;
    typename P::Operand* probabilities =
        op.probabilities + static_cast<std::size_t>(query) * static_cast<std::size_t>(tokens);
    attend<Team, P>(team, op.qkv + row * 3 * width + in_row, first + width, first + 2 * width, 3 * width, t + 1,
                    head_width, probabilities, op.y + row * width + in_row);
    for (int j = t + 1 + team.lane(); j < tokens; j += Team::width) {
        probabilities[j] = store<typename P::Operand>(typename P::Real(0));
    }
}

/// `index` counts the heads of all sequences: [S][B][H]. With dp_tj = dy_t . v_j, the scores' gradient is
/// ds_tj = p_tj (dp_tj - sum_j p_tj dp_tj); it lies in the scratch between the two halves.
template <class Team, class P>
MILLRACE_HOST_DEVICE void attention_backward_head(const Team& team, const AttentionBackward<P>& op, int index) {
    using Real = typename P::Real;
    using Operand = typename P::Operand;
    const int tokens = op.extent.tokens;
    const int head_width = op.width / op.heads;
    const int head = index % op.heads;
    const int sequence = index / op.heads;
    const auto width = static_cast<std::size_t>(op.width);
    const auto square = static_cast<std::size_t>(tokens) * static_cast<std::size_t>(tokens);
    const std::size_t first_row = static_cast<std::size_t>(sequence) * static_cast<std::size_t>(tokens);
    const std::size_t in_row = static_cast<std::size_t>(head) * static_cast<std::size_t>(head_width);
    const Operand* q = op.qkv + first_row * 3 * width + in_row;
    const Operand* k = q + width;
    const Operand* v = k + width;
    const Operand* dy = op.dy + first_row * width + in_row;
    Operand* dq = op.dqkv + first_row * 3 * width + in_row;
    Operand* dk = dq + width;
    Operand* dv = dk + width;
    const Operand* p = op.probabilities + static_cast<std::size_t>(index) * square;
    Real* ds = op.scratch + static_cast<std::size_t>(index) * square;
    const std::size_t stride = 3 * width;
    const Real scale = Real(1) / sqrt_of(static_cast<Real>(head_width));
    const auto at = [tokens](int t, int j) { return static_cast<std::size_t>(t * tokens + j); };
    const auto place = [](int row, std::size_t row_stride, int i) {
        return static_cast<std::size_t>(row) * row_stride + static_cast<std::size_t>(i);
    };

    for (int t = 0; t < tokens; ++t) {
        Real mean = Real(0);
        for (int j = team.lane(); j <= t; j += Team::width) {
            Real dp = Real(0);
            for (int i = 0; i < head_width; ++i) {
                dp += load<Real>(dy[place(t, width, i)]) * load<Real>(v[place(j, stride, i)]);
            }
            ds[at(t, j)] = dp;
            mean += dp * load<Real>(p[at(t, j)]);
        }
        mean = team.sum(mean);
        for (int j = team.lane(); j <= t; j += Team::width) {
            ds[at(t, j)] = load<Real>(p[at(t, j)]) * (ds[at(t, j)] - mean) * scale;
        }
    }
    team.sync();
    for (int r = 0; r < tokens; ++r) {
        for (int i = team.lane(); i < head_width; i += Team::width) {
            Real query = Real(0);
            for (int j = 0; j <= r; ++j) {
                query += ds[at(r, j)] * load<Real>(k[place(j, stride, i)]);
            }
            Real key = Real(0);
            Real value = Real(0);
            for (int t = r; t < tokens; ++t) {
                key += ds[at(t, r)] * load<Real>(q[place(t, stride, i)]);
                value += load<Real>(p[at(t, r)]) * load<Real>(dy[place(t, width, i)]);
            }
            dq[place(r, stride, i)] = store<Operand>(query);
            dk[place(r, stride, i)] = store<Operand>(key);
            dv[place(r, stride, i)] = store<Operand>(value);
        }
    }
}

/// `row` counts the prompts' tokens: [S][B][T].
template <class Team, class P>
MILLRACE_HOST_DEVICE void fill_cache_row(const Team& team, const FillCache<P>& op, int row) {
    const int prompt = row / op.extent.tokens;
    const int t = row - prompt * op.extent.tokens;
    const auto width = static_cast<std::size_t>(op.width);
    const typename P::Operand* __restrict key = op.qkv + (static_cast<std::size_t>(row) * 3 + 1) * width;
    for (int copy = 0; copy < op.copies; ++copy) {
        const auto sequence =
            static_cast<std::size_t>(prompt) * static_cast<std::size_t>(op.copies) + static_cast<std::size_t>(copy);
        const std::size_t place =
            (sequence * static_cast<std::size_t>(op.context) + static_cast<std::size_t>(t)) * width;
        for (int i = team.lane(); i < op.width; i += Team::width) {
            op.keys[place + static_cast<std::size_t>(i)] = key[i];
            op.values[place + static_cast<std::size_t>(i)] = key[width + static_cast<std::size_t>(i)];
        }
    }
}

/// `index` counts the heads of all sequences: [S][B][H].
template <class Team, class P>
MILLRACE_HOST_DEVICE void attention_decode_head(const Team& team, const AttentionDecode<P>& op, int index) {
    const int head_width = op.width / op.heads;
    const int head = index % op.heads;
    const auto sequence = static_cast<std::size_t>(index / op.heads);
    const auto width = static_cast<std::size_t>(op.width);
    const auto context = static_cast<std::size_t>(op.context);
    const std::size_t in_row = static_cast<std::size_t>(head) * static_cast<std::size_t>(head_width);
    const typename P::Operand* query = op.qkv + sequence * 3 * width + in_row;
    typename P::Operand* keys = op.keys + sequence * context * width + in_row;
    typename P::Operand* values = op.values + sequence * context * width + in_row;
    const std::size_t place = static_cast<std::size_t>(op.position) * width;
    for (int i = team.lane(); i < head_width; i += Team::width) {
        keys[place + static_cast<std::size_t>(i)] = query[width + static_cast<std::size_t>(i)];
        values[place + static_cast<std::size_t>(i)] = query[2 * width + static_cast<std::size_t>(i)];
    }
    team.sync();
    attend<Team, P>(team, query, keys, values, width, op.position + 1, head_width,
                    op.probabilities + static_cast<std::size_t>(index) * context, op.y + sequence * width + in_row);
}

}  // namespace millrace
