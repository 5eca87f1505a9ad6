// A whole generation on one CPU core: few sequences at a time through all layers and steps, so that their keys and
// values stay in the core's caches, with matrices that are laid out for it once.
//
// Attention, norms and sampling are those of the step-by-step form.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/cpu/attention_body.h"
#include "kernels/cpu/packed_product.h"
#include "kernels/cpu/softmax_body.h"
#include "kernels/generate.h"
#include "kernels/rows/embedding.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/team.h"

namespace millrace {

/// Memory that grows to what was ever asked for.
template <typename Real>
class GrowingMemory {
   public:
    /// Hands out parts, from the beginning again after start(). Parts are aligned to 64 bytes.
    void start(std::size_t numbers, std::size_t parts) {
        const std::size_t wanted = numbers + (parts + 1) * line;
        if (memory_.size() < wanted) {
            memory_.resize(wanted);
        }
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        next_ = memory_.data() + (64 - address % 64) % 64 / sizeof(Real);
    }
    Real* take(std::size_t numbers) {
        Real* part = next_;
        next_ += (numbers + line - 1) / line * line;
        return part;
    }

   private:
    static constexpr std::size_t line = 64 / sizeof(Real);
    std::vector<Real> memory_;
    Real* next_ = nullptr;
};

/// N: the vector length of attention, which divides the head width.
template <int N, typename P>
class GenerationOnCore {
    using Real = typename P::Real;

   public:
    explicit GenerationOnCore(const Generate<P>& op) : op_(op) {}

    void run() {
        prompts_at_once_ = std::max(1, block_sequences / op_.copies);
        const int sequences = prompts_at_once_ * op_.copies;
        const int rows = std::max(sequences, prompts_at_once_ * op_.prompt_tokens);
        const auto r = static_cast<std::size_t>(rows);
        const auto width = static_cast<std::size_t>(op_.width);
        const auto scores = static_cast<std::size_t>(op_.heads) * static_cast<std::size_t>(op_.prompt_tokens);
        static thread_local GrowingMemory<Real> memory;
        memory.start(
            packed_size() + r * (6 * width + static_cast<std::size_t>(op_.mlp_width + op_.vocabulary) + scores),
            static_cast<std::size_t>(4 * op_.layers + 1 + 7));
        x_ = memory.take(r * width);
        norm_ = memory.take(r * width);
        qkv_ = memory.take(r * 3 * width);
        attended_ = memory.take(r * width);
        hidden_ = memory.take(r * static_cast<std::size_t>(op_.mlp_width));
        logits_ = memory.take(r * static_cast<std::size_t>(op_.vocabulary));
        probabilities_ = memory.take(r * scores);
        Real* packed = memory.take(0);
        for (replica_ = 0; replica_ < op_.replicas; ++replica_) {
            pack(packed);
            for (int prompt = 0; prompt < op_.prompts; prompt += prompts_at_once_) {
                generate_block(prompt, std::min(prompts_at_once_, op_.prompts - prompt));
            }
        }
    }

   private:
    /// Sequences that go through all steps together: enough to use a matrix well once it is in the cache.
    static constexpr int block_sequences = 16;
    static constexpr SerialTeam team{};

    using Matrix = PackedMatrix<Real>;
    struct Layer {
        Matrix qkv;
        Matrix attention_out;
        Matrix mlp_up;
        Matrix mlp_down;
    };

    std::size_t packed_size() const {
        const int d = op_.width;
        const int f = op_.mlp_width;
        const std::size_t layer = Matrix::size(d, 3 * d) + Matrix::size(d, d) + Matrix::size(d, f) + Matrix::size(f, d);
        return static_cast<std::size_t>(op_.layers) * layer + Matrix::size(d, op_.vocabulary);
    }

    /// The matrices of the current replica. Sizes are multiples of a panel, so parts stay aligned.
    void pack(Real* memory) {
        const Real* operands = op_.operands + static_cast<std::size_t>(replica_) * op_.places.size;
        const auto next = [&](std::size_t place, int in, int out) {
            const Matrix matrix(operands + place, in, out, memory);
            memory += Matrix::size(in, out);
            return matrix;
        };
        layers_.clear();
        for (int l = 0; l < op_.layers; ++l) {
            const auto& place = op_.places.layer[l];
            const Matrix qkv = next(place.qkv, op_.width, 3 * op_.width);
            const Matrix attention_out = next(place.attention_out, op_.width, op_.width);
            const Matrix mlp_up = next(place.mlp_up, op_.width, op_.mlp_width);
            const Matrix mlp_down = next(place.mlp_down, op_.mlp_width, op_.width);
            layers_.push_back({qkv, attention_out, mlp_up, mlp_down});
        }
        head_.clear();
        head_.push_back(next(op_.places.head, op_.width, op_.vocabulary));
    }

    void generate_block(int first_prompt, int prompts) {
        const int sequences = prompts * op_.copies;
        first_ = static_cast<std::size_t>(replica_) * static_cast<std::size_t>(op_.prompts * op_.copies) +
                 static_cast<std::size_t>(first_prompt * op_.copies);
        if (op_.prompt_tokens > 1) {  // the last prompt token is the first to be decoded
            fill_caches({1, prompts, op_.prompt_tokens - 1});
        }
        const Extent extent{1, sequences, 1};
        std::int32_t* ended = op_.ended + first_;
        for (int position = op_.prompt_tokens; position < op_.context; ++position) {
            if (!std::all_of(ended, ended + sequences, [](std::int32_t e) { return e != 0; })) {
                decode(extent, position - 1);
            }
            const Sample<P> draw{.extent = extent,
                                 .vocabulary = op_.vocabulary,
                                 .position = position,
                                 .rule = op_.rule,
                                 .seed = op_.seed + replica_,
                                 .sequence_id = op_.sequence_id + first_,
                                 .logits = logits_,
                                 .ended = ended,
                                 .token = tokens() + position,
                                 .token_stride = context(),
                                 .log_probability = op_.log_probability + first_ * context() + position,
                                 .log_probability_stride = context()};
            for (int sequence = 0; sequence < sequences; ++sequence) {
                sample_in_vectors(draw, sequence);
            }
        }
    }

    void fill_caches(const Extent& extent) {
        embed(extent, 0, static_cast<std::size_t>(op_.copies) * context());
        for (int l = 0; l < op_.layers; ++l) {
            project_qkv(extent, l);
            const FillCache<P> fill{.extent = extent,
                                    .width = op_.width,
                                    .copies = op_.copies,
                                    .context = op_.context,
                                    .qkv = qkv_,
                                    .keys = op_.keys + cache(l),
                                    .values = op_.values + cache(l)};
            for (int row = 0; row < extent.rows(); ++row) {
                fill_cache_row(team, fill, row);
            }
            if (l + 1 == op_.layers) {
                return;
            }
            const AttentionForward<P> attention{.extent = extent,
                                                .width = op_.width,
                                                .heads = op_.heads,
                                                .qkv = qkv_,
                                                .y = attended_,
                                                .probabilities = probabilities_};
            for (int head = 0; head < extent.sequences * op_.heads; ++head) {
                attention_forward_head<N>(attention, head);
            }
            finish_layer(extent, l);
        }
    }

    void decode(const Extent& extent, int position) {
        embed(extent, position, context());
        for (int l = 0; l < op_.layers; ++l) {
            project_qkv(extent, l);
            const AttentionDecode<P> attention{.extent = extent,
                                               .width = op_.width,
                                               .heads = op_.heads,
                                               .context = op_.context,
                                               .position = position,
                                               .qkv = qkv_,
                                               .keys = op_.keys + cache(l),
                                               .values = op_.values + cache(l),
                                               .y = attended_,
                                               .probabilities = nullptr};
            const int heads = extent.sequences * op_.heads;
            for (int first = 0; first < heads; first += decode_group) {
                attention_decode_heads<N>(attention, first, std::min(heads, first + decode_group));
            }
            finish_layer(extent, l);
        }
        normalize(extent, op_.places.final_gain);
        head_[0].template multiply<ProductEnd::store>(norm_, extent.rows(), logits_);
    }

    void embed(const Extent& extent, int first_position, std::size_t token_stride) {
        const Real* weights = op_.weights + static_cast<std::size_t>(replica_) * op_.places.size;
        const EmbeddingForward<P> embedding{.extent = extent,
                                            .width = op_.width,
                                            .first_position = first_position,
                                            .tokens = tokens() + first_position,
                                            .token_stride = token_stride,
                                            .token_table = weights + op_.places.token_table,
                                            .position_table = weights + op_.places.position_table,
                                            .parameter_stride = 0,
                                            .x = x_};
        for (int row = 0; row < extent.rows(); ++row) {
            embedding_forward_row(team, embedding, row);
        }
    }

    void normalize(const Extent& extent, std::size_t gain) {
        const RmsNormForward<P> norm{.extent = extent,
                                     .width = op_.width,
                                     .x = x_,
                                     .gain = op_.weights + static_cast<std::size_t>(replica_) * op_.places.size + gain,
                                     .parameter_stride = 0,
                                     .y = norm_,
                                     .inverse_rms = nullptr};
        for (int row = 0; row < extent.rows(); ++row) {
            rms_norm_forward_row(team, norm, row);
        }
    }

    void project_qkv(const Extent& extent, int l) {
        normalize(extent, op_.places.layer[l].attention_gain);
        layer(l).qkv.template multiply<ProductEnd::store>(norm_, extent.rows(), qkv_);
    }

    void finish_layer(const Extent& extent, int l) {
        layer(l).attention_out.template multiply<ProductEnd::add>(attended_, extent.rows(), x_);
        normalize(extent, op_.places.layer[l].mlp_gain);
        layer(l).mlp_up.template multiply<ProductEnd::store_positive>(norm_, extent.rows(), hidden_);
        layer(l).mlp_down.template multiply<ProductEnd::add>(hidden_, extent.rows(), x_);
    }

    const Layer& layer(int l) const { return layers_[static_cast<std::size_t>(l)]; }
    std::size_t context() const { return static_cast<std::size_t>(op_.context); }
    Token* tokens() const { return op_.tokens + first_ * context(); }
    /// Where the block's keys and values of layer `l` begin.
    std::size_t cache(int l) const {
        const auto all = static_cast<std::size_t>(op_.replicas) * static_cast<std::size_t>(op_.prompts * op_.copies);
        return (static_cast<std::size_t>(l) * all + first_) * context() * static_cast<std::size_t>(op_.width);
    }

    const Generate<P>& op_;
    int replica_ = 0;
    int prompts_at_once_ = 1;
    std::size_t first_ = 0;  ///< the block's first sequence, counted through all replicas
    std::vector<Layer> layers_;
    std::vector<Matrix> head_;
    Real* x_ = nullptr;
    Real* norm_ = nullptr;
    Real* qkv_ = nullptr;
    Real* attended_ = nullptr;
    Real* hidden_ = nullptr;
    Real* logits_ = nullptr;
    Real* probabilities_ = nullptr;
};

}  // namespace millrace
