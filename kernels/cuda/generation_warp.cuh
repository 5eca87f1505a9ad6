// What a warp of the fused generation kernel does with a token: embedding, layers, logits, and the next token's draw.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/generation_layout.h"
#include "kernels/cuda/warp_team.h"
#include "kernels/launch.h"
#include "kernels/math.h"
#include "kernels/rows/embedding.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/rows/sample.h"

namespace millrace {

template <typename Operand>
struct alignas(16) Chunk {
    Operand number[16 / sizeof(Operand)];
};

/// A matrix [out][in] of which row r begins at r * stride.
template <typename Operand>
struct GenerationMatrix {
    const Operand* numbers = nullptr;
    int stride = 0;
    int out = 0;
    int in = 0;
};

/// The dot product of one row with x, whose numbers are read 16 bytes at a time and added up in four strands, because a
/// single one would make every addition wait for the one before it.
template <typename P>
__device__ inline typename P::Real dot_row(const GenerationMatrix<typename P::Operand>& matrix, int row,
                                           const typename P::Operand* x) {
    using Real = typename P::Real;
    using Numbers = Chunk<typename P::Operand>;
    constexpr int each = chunk_numbers<typename P::Operand>;
    const auto* w = reinterpret_cast<const Numbers*>(matrix.numbers + static_cast<std::size_t>(row) *
                                                                          static_cast<std::size_t>(matrix.stride));
    const auto* v = reinterpret_cast<const Numbers*>(x);
    Real strand[4] = {};
    for (int c = 0; c < matrix.in / each; ++c) {
        const Numbers weights = w[c];
        const Numbers numbers = v[c];
#if defined(__CUDACC__)
#pragma unroll
#endif
        for (int i = 0; i < each; ++i) {
            strand[i % 4] += load<Real>(weights.number[i]) * load<Real>(numbers.number[i]);
        }
    }
    return (strand[0] + strand[1]) + (strand[2] + strand[3]);
}

/// One warp's work on tokens, and where in the block's memory it finds what it needs.
template <typename P>
class GenerationWarp {
   public:
    using Real = typename P::Real;
    using Operand = typename P::Operand;

    __device__ GenerationWarp(const Generate<P>& op, const GenerationLayout& layout, unsigned char* shared, int replica)
        : op_(op), layout_(layout), shared_(shared), warp_(static_cast<int>(threadIdx.x) / 32), replica_(replica) {
        const std::size_t start = static_cast<std::size_t>(replica) * op.places.size;
        weights_ = op.weights + start;
        operands_ = op.operands + start;
    }

    /// The keys (`which` 0) or values (1) of a layer for the sequence that the block's warp `slot` decodes.
    __device__ Operand* cache(int layer, int which, int slot, int sequence) const {
        const auto context = static_cast<std::size_t>(op_.context);
        const auto stride = static_cast<std::size_t>(cache_stride());
        if (layout_.cache_shared) {
            const auto one = static_cast<std::size_t>((slot * op_.layers + layer) * 2 + which);
            return at<Operand>(layout_.cache) + one * context * stride;
        }
        const int sequences = op_.prompts * op_.copies;
        const auto one = static_cast<std::size_t>((layer * op_.replicas + replica_) * sequences + sequence);
        return (which == 0 ? op_.keys : op_.values) + one * context * stride;
    }
    __device__ int cache_stride() const { return layout_.cache_shared ? padded_row<Operand>(op_.width) : op_.width; }

    __device__ Real* residual(int row) const { return row_of<Real>(layout_.residual, row, op_.width); }
    __device__ Operand* queries(int row) const { return row_of<Operand>(layout_.queries, row, op_.width); }
    __device__ Real* logits(int row) const { return row_of<Real>(layout_.logits, row, op_.vocabulary); }

    /// x = embedding of the token at `position` of a sequence.
    __device__ void embed(int sequence, int position, Real* x) const {
        EmbeddingForward<P> embedding;
        embedding.extent = {1, 1, 1};
        embedding.width = op_.width;
        embedding.first_position = position;
        embedding.tokens = tokens(sequence) + position;
        embedding.token_table = weights_ + op_.places.token_table;
        embedding.position_table = weights_ + op_.places.position_table;
        embedding.x = x;
        embedding_forward_row(team_, embedding, 0);
        team_.sync();
    }

    /// Query, key and value of x; the query goes to `query`, the others to position `position` of the caches of slots
    /// `first_slot` ... `last_slot` - 1, whose sequences are `first_sequence` + slot.
    __device__ void project(int layer, const Real* x, Operand* query, int position, int first_slot, int last_slot,
                            int first_sequence) const {
        Operand* const qkv = products();
        norm(x, weights_ + op_.places.layer[layer].attention_gain);
        multiply(matrix(layer, attention_qkv), normed(), [&](int o, Real sum) { qkv[o] = store<Operand>(sum); });
        team_.sync();
        const std::size_t place = static_cast<std::size_t>(position) * static_cast<std::size_t>(cache_stride());
        for (int i = team_.lane(); i < op_.width; i += WarpTeam::width) {
            query[i] = qkv[i];
        }
        for (int slot = first_slot; slot < last_slot; ++slot) {
            Operand* const keys = cache(layer, 0, slot, first_sequence + slot) + place;
            Operand* const values = cache(layer, 1, slot, first_sequence + slot) + place;
            for (int i = team_.lane(); i < op_.width; i += WarpTeam::width) {
                keys[i] = qkv[op_.width + i];
                values[i] = qkv[2 * op_.width + i];
            }
        }
        team_.sync();
    }

    /// The rest of a layer: x += attention of `query` to `keys` positions; x += MLP(norm(x)).
    __device__ void attend_and_mlp(int layer, Real* x, const Operand* query, int slot, int sequence, int keys) const {
        const ParameterPlaces::Layer& places = op_.places.layer[layer];
        for (int head = 0; head < op_.heads; ++head) {
            attend(query, cache(layer, 0, slot, sequence), cache(layer, 1, slot, sequence), head, keys);
        }
        multiply(matrix(layer, attention_out), normed(), [&](int o, Real sum) { x[o] += sum; });
        team_.sync();
        Operand* const hidden = products();
        norm(x, weights_ + places.mlp_gain);
        multiply(matrix(layer, mlp_up), normed(), [&](int o, Real sum) {
            const Operand rounded = store<Operand>(sum);
            hidden[o] = load<Real>(rounded) > Real(0) ? rounded : store<Operand>(Real(0));
        });
        team_.sync();
        multiply(matrix(layer, mlp_down), hidden, [&](int o, Real sum) { x[o] += sum; });
        team_.sync();
    }

    __device__ void classify(const Real* x, Real* logits) const {
        norm(x, weights_ + op_.places.final_gain);
        multiply(head_matrix(), normed(), [&](int o, Real sum) { logits[o] = sum; });
        team_.sync();
    }

    /// Gives the logits of slot `first` to the slots after it, before `last`.
    __device__ void share_logits(int first, int last) const {
        for (int slot = first + 1; slot < last; ++slot) {
            for (int v = team_.lane(); v < op_.vocabulary; v += WarpTeam::width) {
                logits(slot)[v] = logits(first)[v];
            }
        }
    }

    /// Draws the token at `position`; returns whether the sequence has ended.
    __device__ bool sample(int sequence, int position, const Real* logits) const {
        const std::size_t place = index(sequence);
        Sample<P> draw;
        draw.extent = {1, 1, 1};
        draw.vocabulary = op_.vocabulary;
        draw.position = position;
        draw.rule = op_.rule;
        draw.seed = op_.seed + replica_;
        draw.sequence_id = op_.sequence_id + place;
        draw.logits = logits;
        draw.ended = op_.ended + place;
        draw.token = tokens(sequence) + position;
        draw.log_probability = op_.log_probability + place * static_cast<std::size_t>(op_.context) + position;
        sample_sequence(team_, draw, 0);
        team_.sync();
        const bool ended = *draw.ended != 0;
        team_.sync();
        return ended;
    }

    /// What a sequence that has ended at `position` gets from there on.
    __device__ void pad(int sequence, int position) const {
        const std::size_t first = index(sequence) * static_cast<std::size_t>(op_.context);
        for (int t = position + team_.lane(); t < op_.context; t += WarpTeam::width) {
            op_.tokens[first + static_cast<std::size_t>(t)] = op_.rule.pad;
            op_.log_probability[first + static_cast<std::size_t>(t)] = Real(0);
        }
    }

    /// Copies all matrices into shared memory; the whole block takes part.
    __device__ void load_weights() const {
        for (int layer = 0; layer < op_.layers; ++layer) {
            for (int kind = attention_qkv; kind <= mlp_down; ++kind) {
                copy(source(layer, kind), matrix(layer, kind));
            }
        }
        copy(head_source(), head_matrix());
    }

   private:
    enum Kind : int { attention_qkv, attention_out, mlp_up, mlp_down };
    using Matrix = GenerationMatrix<Operand>;

    template <typename Number>
    __device__ Number* at(std::size_t bytes) const {
        return reinterpret_cast<Number*>(shared_ + bytes);
    }
    template <typename Number>
    __device__ Number* row_of(std::size_t bytes, int row, int numbers) const {
        return at<Number>(bytes) + static_cast<std::size_t>(row) * static_cast<std::size_t>(numbers);
    }
    __device__ Operand* normed() const { return row_of<Operand>(layout_.normed, warp_, op_.width); }
    __device__ Operand* products() const {
        return row_of<Operand>(layout_.products, warp_, 3 * op_.width > op_.mlp_width ? 3 * op_.width : op_.mlp_width);
    }
    __device__ Real* scores() const { return row_of<Real>(layout_.scores, warp_, op_.context); }

    __device__ std::size_t index(int sequence) const {
        return static_cast<std::size_t>(replica_) * static_cast<std::size_t>(op_.prompts * op_.copies) +
               static_cast<std::size_t>(sequence);
    }
    __device__ Token* tokens(int sequence) const {
        return op_.tokens + index(sequence) * static_cast<std::size_t>(op_.context);
    }

    /// Where a matrix lies in the device's memory.
    __device__ Matrix source(int layer, int kind) const {
        const ParameterPlaces::Layer& places = op_.places.layer[layer];
        const int d = op_.width;
        const int f = op_.mlp_width;
        switch (kind) {
            case attention_qkv:
                return {operands_ + places.qkv, d, 3 * d, d};
            case attention_out:
                return {operands_ + places.attention_out, d, d, d};
            case mlp_up:
                return {operands_ + places.mlp_up, d, f, d};
            default:
                return {operands_ + places.mlp_down, f, d, f};
        }
    }
    __device__ Matrix head_source() const {
        return {operands_ + op_.places.head, op_.width, op_.vocabulary, op_.width};
    }

    /// Where products read it. In shared memory a layer's rows of `width` numbers come first, in the order of Kind.
    __device__ Matrix matrix(int layer, int kind) const {
        Matrix found = source(layer, kind);
        if (layout_.weights_shared) {
            const int rows_before = kind == attention_qkv   ? 0
                                    : kind == attention_out ? 3 * op_.width
                                    : kind == mlp_up        ? 4 * op_.width
                                                            : 4 * op_.width + op_.mlp_width;
            found.stride = padded_row<Operand>(found.in);
            found.numbers = at<Operand>(0) + layer * layer_numbers() + rows_before * padded_row<Operand>(op_.width);
        }
        return found;
    }
    __device__ Matrix head_matrix() const {
        Matrix found = head_source();
        if (layout_.weights_shared) {
            found.stride = padded_row<Operand>(found.in);
            found.numbers = at<Operand>(0) + op_.layers * layer_numbers();
        }
        return found;
    }
    __device__ int layer_numbers() const {
        return (4 * op_.width + op_.mlp_width) * padded_row<Operand>(op_.width) +
               op_.width * padded_row<Operand>(op_.mlp_width);
    }

    __device__ static void copy(const Matrix& from, const Matrix& to) {
        using Numbers = Chunk<Operand>;
        const int chunks = from.in / chunk_numbers<Operand>;
        const auto* const source_chunks = reinterpret_cast<const Numbers*>(from.numbers);
        auto* const chunks_there = reinterpret_cast<Numbers*>(const_cast<Operand*>(to.numbers));
        for (int c = static_cast<int>(threadIdx.x); c < from.out * chunks; c += generation_warps * 32) {
            const int row = c / chunks;
            chunks_there[row * (to.stride / chunk_numbers<Operand>)+(c - row * chunks)] = source_chunks[c];
        }
    }

    /// normed() = RMSNorm(x)
    __device__ void norm(const Real* x, const Real* gain) const {
        RmsNormForward<P> op;
        op.extent = {1, 1, 1};
        op.width = op_.width;
        op.x = x;
        op.gain = gain;
        op.y = normed();
        rms_norm_forward_row(team_, op, 0);
        team_.sync();
    }

    /// take(o, row o of the matrix times x) for all o, which the lanes share.
    template <typename Take>
    __device__ void multiply(const Matrix& matrix, const Operand* x, const Take& take) const {
        for (int o = team_.lane(); o < matrix.out; o += WarpTeam::width) {
            take(o, dot_row<P>(matrix, o, x));
        }
    }

    /// One head of normed() = softmax(query . keys / sqrt(head width)) values; as rows/attention.h, but every score is
    /// computed once and kept.
    __device__ void attend(const Operand* query, const Operand* keys, const Operand* values, int head,
                           int count) const {
        const int head_width = op_.width / op_.heads;
        const int first = head * head_width;
        const int stride = cache_stride();
        const Real scale = Real(1) / sqrt_of(static_cast<Real>(head_width));
        Real* const score = scores();
        Real highest = Real(0);
        for (int j = team_.lane(); j < count; j += WarpTeam::width) {
            const Operand* const key = keys + j * stride + first;
            Real sum = Real(0);
            for (int i = 0; i < head_width; ++i) {
                sum += load<Real>(query[first + i]) * load<Real>(key[i]);
            }
            score[j] = sum * scale;
        }
        team_.sync();
        highest = score[0];
        for (int j = team_.lane(); j < count; j += WarpTeam::width) {
            highest = score[j] > highest ? score[j] : highest;
        }
        highest = team_.max(highest);
        Real total = Real(0);
        for (int j = team_.lane(); j < count; j += WarpTeam::width) {
            total += exp_of(score[j] - highest);
        }
        const Real inverse = Real(1) / team_.sum(total);
        team_.sync();  // all have read score[0]
        for (int j = team_.lane(); j < count; j += WarpTeam::width) {
            score[j] = load<Real>(store<Operand>(exp_of(score[j] - highest) * inverse));
        }
        team_.sync();
        Operand* const y = normed() + first;
        for (int i = team_.lane(); i < head_width; i += WarpTeam::width) {
            Real sum = Real(0);
            for (int j = 0; j < count; ++j) {
                sum += score[j] * load<Real>(values[j * stride + first + i]);
            }
            y[i] = store<Operand>(sum);
        }
        team_.sync();
    }

    const Generate<P>& op_;
    const GenerationLayout& layout_;
    unsigned char* shared_;
    int warp_;
    int replica_;
    const Real* weights_ = nullptr;
    const Operand* operands_ = nullptr;
    WarpTeam team_;
};

}  // namespace millrace
