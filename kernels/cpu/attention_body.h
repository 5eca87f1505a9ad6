// Attention of one head on the CPU, in vectors of N numbers; the shared bodies are in kernels/rows/attention.h.
//
// Scores of one query are computed for N keys at a time, from keys laid out as columns; what follows them (values,
// gradients) for N places of the head at a time. The head width must be a multiple of N.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/cpu/vector.h"
#include "kernels/ops.h"

namespace millrace {

/// Memory of one thread that attention works in; what was in it before is lost.
template <typename Real>
Real* attention_buffer(std::size_t numbers) {
    static thread_local std::vector<Real> buffer;
    constexpr std::size_t line = 64 / sizeof(Real);
    if (buffer.size() < numbers + line) {
        buffer.resize(numbers + line);
    }
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    return buffer.data() + (64 - address % 64) % 64 / sizeof(Real);
}

/// Where one head of one sequence lies in the arrays of the training form.
struct HeadPlace {
    int tokens;
    int head_width;
    std::size_t stride;  ///< from a token to the next one in qkv
    std::size_t width;   ///< and in y; and from q to k, and from k to v
    std::size_t qkv;
    std::size_t y;
    std::size_t square;  ///< of the probabilities

    template <typename Op>
    HeadPlace(const Op& op, int index)
        : tokens(op.extent.tokens), head_width(op.width / op.heads), width(static_cast<std::size_t>(op.width)) {
        const auto sequence = static_cast<std::size_t>(index / op.heads);
        const auto head = static_cast<std::size_t>(index % op.heads) * static_cast<std::size_t>(head_width);
        const auto t = static_cast<std::size_t>(tokens);
        stride = 3 * width;
        qkv = sequence * t * stride + head;
        y = sequence * t * width + head;
        square = static_cast<std::size_t>(index) * t * t;
    }
};

template <int N>
int padded(int count) {
    return (count + N - 1) / N * N;
}

/// columns[i][j] = rows[j][i] * factor, with zeros up to the padded number of rows.
template <int N, typename Real>
void lay_out_as_columns(const Real* rows, std::size_t stride, int count, int head_width, Real factor, Real* columns) {
    const int padded_count = padded<N>(count);
    for (int j = 0; j < padded_count; ++j) {
        const Real* __restrict row = rows + static_cast<std::size_t>(j) * stride;
        Real* __restrict column = columns + j;
        for (int i = 0; i < head_width; ++i) {
            column[static_cast<std::size_t>(i) * static_cast<std::size_t>(padded_count)] =
                j < count ? row[i] * factor : Real(0);
        }
    }
}

/// sum over i of row[i] * columns[i][0 ... N-1].
template <int N, typename Real>
Vector<Real, N> times_columns(const Real* row, const Real* columns, std::size_t stride, int head_width) {
    Vector<Real, N> even{};
    Vector<Real, N> odd{};
    for (int i = 0; i < head_width; i += 2) {
        even += row[i] * load_vector<N>(columns);
        odd += row[i + 1] * load_vector<N>(columns + stride);
        columns += 2 * stride;
    }
    return even + odd;
}

/// sum over j of factors[j * factor_stride] * rows[j][0 ... N-1].
template <int N, typename Real>
Vector<Real, N> mix_rows(const Real* factors, std::size_t factor_stride, const Real* rows, std::size_t stride,
                         int count) {
    Vector<Real, N> even{};
    Vector<Real, N> odd{};
    int j = 0;
    for (; j + 1 < count; j += 2) {
        even += factors[0] * load_vector<N>(rows);
        odd += factors[factor_stride] * load_vector<N>(rows + stride);
        factors += 2 * factor_stride;
        rows += 2 * stride;
    }
    if (j < count) {
        even += factors[0] * load_vector<N>(rows);
    }
    return even + odd;
}

/// Softmax over row[0 ... keys-1], in place, up to the next multiple of N, with zeros behind the keys.
template <int N, typename Real>
void softmax_of_scores(Real* row, int keys) {
    const auto lanes = lane_numbers<Real, N>();
    const int blocks = padded<N>(keys);
    // Places behind the keys hold finite numbers, and only the last block has any.
    const auto inside = lanes < static_cast<typename VectorOf<Real, N>::Integer>(keys - (blocks - N));
    const Vector<Real, N> nothing = splat<N>(-std::numeric_limits<Real>::infinity());
    const Vector<Real, N> last = inside ? load_vector<N>(row + blocks - N) : nothing;
    Vector<Real, N> highest = last;
    for (int b = 0; b + N < blocks; b += N) {
        highest = larger<Real, N>(highest, load_vector<N>(row + b));
    }
    const Vector<Real, N> top = splat<N>(largest_lane<Real, N>(highest));
    Vector<Real, N> total{};
    for (int b = 0; b + N < blocks; b += N) {
        const Vector<Real, N> e = exp_of_nonpositive<N>(load_vector<N>(row + b) - top);
        total += e;
        store_vector(row + b, e);
    }
    const Vector<Real, N> e = exp_of_nonpositive<N>(last - top);
    total += e;
    store_vector(row + blocks - N, e);
    const Real inverse = Real(1) / sum_of_lanes<Real, N>(total);
    for (int b = 0; b < blocks; b += N) {
        store_vector(row + b, load_vector<N>(row + b) * inverse);
    }
}

template <int N, typename Real>
void copy_row(const Real* __restrict from, int count, Real* __restrict to) {
    int i = 0;
    for (; i + N <= count; i += N) {
        store_vector(to + i, load_vector<N>(from + i));
    }
    for (; i < count; ++i) {
        to[i] = from[i];
    }
}

// What follows goes through all queries of a head (or all heads of some sequences) before the next step of the
// computation, not query by query: each step is a chain of dependent instructions, and a core overlaps neighbours.

template <int N, typename P>
void attention_forward_head(const AttentionForward<P>& op, int index) {
    using Real = typename P::Real;
    const HeadPlace at(op, index);
    const auto keys = static_cast<std::size_t>(padded<N>(at.tokens));
    const auto tokens = static_cast<std::size_t>(at.tokens);
    const Real* q = op.qkv + at.qkv;
    const Real* v = q + 2 * at.width;
    const Real scale = Real(1) / sqrt_of(static_cast<Real>(at.head_width));
    Real* columns = attention_buffer<Real>(keys * (static_cast<std::size_t>(at.head_width) + tokens));
    Real* rows = columns + keys * static_cast<std::size_t>(at.head_width);
    lay_out_as_columns<N>(q + at.width, at.stride, at.tokens, at.head_width, scale, columns);
    for (std::size_t t = 0; t < tokens; ++t) {
        std::size_t b = 0;
        for (; b <= t; b += N) {
            store_vector(rows + t * keys + b, times_columns<N>(q + t * at.stride, columns + b, keys, at.head_width));
        }
        for (; b < keys; b += N) {
            store_vector(rows + t * keys + b, Vector<Real, N>{});
        }
    }
    for (std::size_t t = 0; t < tokens; ++t) {
        softmax_of_scores<N>(rows + t * keys, static_cast<int>(t) + 1);
    }
    for (std::size_t t = 0; t < tokens; ++t) {
        copy_row<N>(rows + t * keys, at.tokens, op.probabilities + at.square + t * tokens);
        for (int i = 0; i < at.head_width; i += N) {
            store_vector(op.y + at.y + t * at.width + i,
                         mix_rows<N>(rows + t * keys, std::size_t{1}, v + i, at.stride, static_cast<int>(t) + 1));
        }
    }
}

template <int N, typename P>
void attention_backward_head(const AttentionBackward<P>& op, int index) {
    using Real = typename P::Real;
    const HeadPlace at(op, index);
    const auto keys = static_cast<std::size_t>(padded<N>(at.tokens));
    const auto tokens = static_cast<std::size_t>(at.tokens);
    const Real* q = op.qkv + at.qkv;
    const Real* k = q + at.width;
    const Real* dy = op.dy + at.y;
    const Real* p = op.probabilities + at.square;
    Real* dq = op.dqkv + at.qkv;
    const Real scale = Real(1) / sqrt_of(static_cast<Real>(at.head_width));
    Real* columns = attention_buffer<Real>(keys * (static_cast<std::size_t>(at.head_width) + tokens + 1));
    Real* probability = columns + keys * static_cast<std::size_t>(at.head_width);
    Real* ds = probability + keys;
    lay_out_as_columns<N>(k + at.width, at.stride, at.tokens, at.head_width, Real(1), columns);
    std::fill_n(probability, keys, Real(0));
    for (std::size_t t = 0; t < tokens; ++t) {
        copy_row<N>(p + t * tokens, at.tokens, probability);
        Real* slope = ds + t * keys;
        Vector<Real, N> product{};
        for (std::size_t b = 0; b <= t; b += N) {
            const Vector<Real, N> dp = times_columns<N>(dy + t * at.width, columns + b, keys, at.head_width);
            store_vector(slope + b, dp);
            product += dp * load_vector<N>(probability + b);
        }
        const Real mean = sum_of_lanes<Real, N>(product);
        for (std::size_t b = 0; b <= t; b += N) {
            store_vector(slope + b, load_vector<N>(probability + b) * (load_vector<N>(slope + b) - mean) * scale);
        }
        for (int i = 0; i < at.head_width; i += N) {
            store_vector(dq + t * at.stride + i,
                         mix_rows<N>(slope, std::size_t{1}, k + i, at.stride, static_cast<int>(t) + 1));
        }
    }
    for (std::size_t j = 0; j < tokens; ++j) {
        const int queries = static_cast<int>(tokens - j);
        for (int i = 0; i < at.head_width; i += N) {
            Real* dk = dq + at.width + j * at.stride + i;
            store_vector(dk, mix_rows<N>(ds + j * keys + j, keys, q + j * at.stride + i, at.stride, queries));
            store_vector(dk + at.width,
                         mix_rows<N>(p + j * tokens + j, tokens, dy + j * at.width + i, at.width, queries));
        }
    }
}

/// Heads that are decoded side by side.
inline constexpr int decode_group = 8;

/// `first` ... `last` - 1 count the heads of all sequences; at most decode_group.
template <int N, typename P>
void attention_decode_heads(const AttentionDecode<P>& op, int first, int last) {
    using Real = typename P::Real;
    const int head_width = op.width / op.heads;
    const auto width = static_cast<std::size_t>(op.width);
    const std::size_t now = static_cast<std::size_t>(op.position) * width;
    const int keys = op.position + 1;
    const auto row_length = static_cast<std::size_t>(padded<N>(keys));
    const Real scale = Real(1) / sqrt_of(static_cast<Real>(head_width));
    Real* rows = attention_buffer<Real>(row_length * decode_group);
    const auto sequence = [&](int index) { return static_cast<std::size_t>(index / op.heads); };
    const auto head = [&](int index) {
        return static_cast<std::size_t>(index % op.heads) * static_cast<std::size_t>(head_width);
    };
    const auto cache = [&](int index) {
        return sequence(index) * static_cast<std::size_t>(op.context) * width + head(index);
    };

    for (int index = first; index < last; ++index) {
        const Real* q = op.qkv + sequence(index) * 3 * width + head(index);
        Real* k = op.keys + cache(index);
        Real* v = op.values + cache(index);
        Real* row = rows + static_cast<std::size_t>(index - first) * row_length;
        for (int i = 0; i < head_width; i += N) {
            store_vector(k + now + i, load_vector<N>(q + width + i));
            store_vector(v + now + i, load_vector<N>(q + 2 * width + i));
        }
        const auto products_with_key = [&](int j) {
            const Real* key = k + static_cast<std::size_t>(j) * width;
            Vector<Real, N> products = load_vector<N>(q) * load_vector<N>(key);
            for (int i = N; i < head_width; i += N) {
                products += load_vector<N>(q + i) * load_vector<N>(key + i);
            }
            return products;
        };
        for (int b = 0; b < keys; b += N) {
            if (keys - b <= N / 4) {  // adding up the lanes of a few keys is less work than of N
                Vector<Real, N> scores{};
                for (int j = 0; j < keys - b; ++j) {
                    scores[j] = sum_of_lanes<Real, N>(products_with_key(b + j)) * scale;
                }
                store_vector(row + b, scores);
                break;
            }
            Vector<Real, N> products[N];
            for (int j = 0; j < N; ++j) {
                // Behind the last key, the last key again: finite numbers, which the softmax leaves out.
                products[j] = products_with_key(b + j < keys ? b + j : keys - 1);
            }
            store_vector(row + b, sums_of_lanes<Real, N>(products) * scale);
        }
    }
    for (int index = first; index < last; ++index) {
        softmax_of_scores<N>(rows + static_cast<std::size_t>(index - first) * row_length, keys);
    }
    for (int index = first; index < last; ++index) {
        const Real* row = rows + static_cast<std::size_t>(index - first) * row_length;
        Real* y = op.y + sequence(index) * width + head(index);
        for (int i = 0; i < head_width; i += N) {
            store_vector(y + i, mix_rows<N>(row, std::size_t{1}, op.values + cache(index) + i, width, keys));
        }
    }
}

}  // namespace millrace
