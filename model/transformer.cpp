#include "model/transformer.h"

#include <algorithm>
#include <type_traits>

namespace millrace {

namespace {

template <typename P>
constexpr bool operands_are_reals = std::is_same_v<typename P::Real, typename P::Operand>;

/// Hands out consecutive parts of one allocation, or, without memory, only counts.
class Divider {
   public:
    explicit Divider(std::byte* memory) : memory_(memory) {}

    template <typename T>
    void give(T*& pointer, std::size_t count) {
        pointer = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
        used_ += (count * sizeof(T) + 63) / 64 * 64;
    }
    std::size_t used() const { return used_; }

   private:
    std::byte* memory_;
    std::size_t used_ = 0;
};

}  // namespace

template <typename P>
template <typename Divider>
Activations<P> Workspace<P>::lay_out(Divider& memory, const Backend<P>& backend, const ModelShape& shape,
                                     const Sizes& sizes) {
    Activations<P> a;
    const std::size_t rows = sizes.rows;
    const auto width = static_cast<std::size_t>(shape.width);
    const auto mlp_width = static_cast<std::size_t>(shape.mlp_width);
    const auto vocabulary = static_cast<std::size_t>(shape.vocabulary);
    const int kept_layers = sizes.training ? shape.layers : 1;
    for (int l = 0; l < kept_layers; ++l) {
        auto& layer = a.layer[l];
        memory.give(layer.x, rows * width);
        memory.give(layer.attention_norm, rows * width);
        memory.give(layer.qkv, rows * 3 * width);
        memory.give(layer.attended, rows * width);
        memory.give(layer.hidden, rows * mlp_width);
        memory.give(layer.probabilities, sizes.scores);
        if (sizes.training) {
            memory.give(layer.attention_inverse_rms, rows);
            memory.give(layer.x_between, rows * width);
            memory.give(layer.mlp_norm, rows * width);
            memory.give(layer.mlp_inverse_rms, rows);
        } else {
            layer.x_between = layer.x;
            layer.mlp_norm = layer.attention_norm;
        }
    }
    for (int l = kept_layers; l < shape.layers; ++l) {
        a.layer[l] = a.layer[0];
    }
    memory.give(a.logits, rows * vocabulary);
    if (!sizes.training) {
        a.x = a.layer[0].x;
        a.norm = a.layer[0].attention_norm;
        return a;
    }
    memory.give(a.x, rows * width);
    memory.give(a.norm, rows * width);
    memory.give(a.inverse_rms, rows);
    memory.give(a.log_probability, rows);
    memory.give(a.entropy, rows);
    memory.give(a.weight, rows);
    memory.give(a.dlogits, rows * vocabulary);
    memory.give(a.dx, rows * width);
    if constexpr (operands_are_reals<P>) {
        a.dx_operand = a.dx;
    } else {
        memory.give(a.dx_operand, rows * width);
    }
    memory.give(a.dnarrow, rows * width);
    memory.give(a.dwide, rows * std::max(mlp_width, 3 * width));
    memory.give(a.norm_scratch, backend.rms_norm_scratch(sizes.extent, shape.width));
    memory.give(a.attention_scratch, sizes.scores);
    return a;
}

template <typename P>
Workspace<P>::Workspace(Backend<P>& backend, const ModelShape& shape, const Sizes& sizes) {
    Divider count(nullptr);
    lay_out(count, backend, shape, sizes);
    memory_ = BackendArray<P, std::byte>(backend, count.used());
    Divider divider(memory_.data());
    activations_ = lay_out(divider, backend, shape, sizes);
}

template <typename P>
Workspace<P> Workspace<P>::for_training(Backend<P>& backend, const ModelShape& shape, const Extent& largest) {
    const auto rows = static_cast<std::size_t>(largest.rows());
    const auto scores = rows * static_cast<std::size_t>(largest.tokens) * static_cast<std::size_t>(shape.heads);
    return Workspace(backend, shape, {largest, rows, scores, true});
}

template <typename P>
Workspace<P> Workspace<P>::for_generation(Backend<P>& backend, const ModelShape& shape, const Extent& prompts,
                                          int copies, int row_tokens) {
    const auto heads = static_cast<std::size_t>(shape.heads);
    const auto prompt_rows = static_cast<std::size_t>(prompts.rows());
    const auto sequences = static_cast<std::size_t>(prompts.replicas) * static_cast<std::size_t>(prompts.sequences) *
                           static_cast<std::size_t>(copies);
    const std::size_t scores = heads * std::max(prompt_rows * static_cast<std::size_t>(prompts.tokens),
                                                sequences * static_cast<std::size_t>(row_tokens));
    return Workspace(backend, shape, {prompts, std::max(prompt_rows, sequences), scores, false});
}

template <typename P>
Transformer<P>::Transformer(Backend<P>& backend, const ModelShape& shape)
    : backend_(backend), shape_(shape), places_(places_of(shape)) {}

// ---- parts of a pass ------------------------------------------------------------------------------------------------

template <typename P>
void Transformer<P>::embed(const PassInput<P>& input, typename P::Real* x, int first_position) const {
    backend_.run(EmbeddingForward<P>{.extent = input.extent,
                                     .width = shape_.width,
                                     .first_position = first_position,
                                     .tokens = input.tokens,
                                     .token_stride = input.token_stride,
                                     .token_table = input.reals + places_.token_table,
                                     .position_table = input.reals + places_.position_table,
                                     .parameter_stride = input.parameter_stride,
                                     .x = x});
}

template <typename P>
void Transformer<P>::normalize(const PassInput<P>& input, const typename P::Real* x, std::size_t gain,
                               typename P::Operand* y, typename P::Real* inverse_rms) const {
    backend_.run(RmsNormForward<P>{.extent = input.extent,
                                   .width = shape_.width,
                                   .x = x,
                                   .gain = input.reals + gain,
                                   .parameter_stride = input.parameter_stride,
                                   .y = y,
                                   .inverse_rms = inverse_rms});
}

template <typename P>
void Transformer<P>::multiply(const PassInput<P>& input, int in, int out, const typename P::Operand* x,
                              std::size_t matrix, typename P::Operand* y) const {
    backend_.run(LinearForward<P>{.extent = input.extent,
                                  .in = in,
                                  .out = out,
                                  .x = x,
                                  .weight = input.operands + matrix,
                                  .parameter_stride = input.parameter_stride,
                                  .y = y});
}

template <typename P>
void Transformer<P>::add_product(const PassInput<P>& input, int in, const typename P::Operand* x, std::size_t matrix,
                                 typename P::Real* sum) const {
    backend_.run(LinearForward<P>{.extent = input.extent,
                                  .in = in,
                                  .out = shape_.width,
                                  .x = x,
                                  .weight = input.operands + matrix,
                                  .parameter_stride = input.parameter_stride,
                                  .y_real = sum,
                                  .accumulate = true});
}

template <typename P>
void Transformer<P>::copy_stream(const PassInput<P>& input, const typename P::Real* from, typename P::Real* to) const {
    if (from != to) {
        const auto numbers = static_cast<std::size_t>(input.extent.rows()) * static_cast<std::size_t>(shape_.width);
        backend_.copy(to, from, numbers * sizeof(typename P::Real));
    }
}

template <typename P>
void Transformer<P>::project_qkv(const PassInput<P>& input, Activations<P>& a, int l) const {
    auto& layer = a.layer[l];
    normalize(input, layer.x, places_.layer[l].attention_gain, layer.attention_norm, layer.attention_inverse_rms);
    multiply(input, shape_.width, 3 * shape_.width, layer.attention_norm, places_.layer[l].qkv, layer.qkv);
}

/// From what the attention found to the stream that the next layer reads.
template <typename P>
void Transformer<P>::finish_layer(const PassInput<P>& input, Activations<P>& a, int l) const {
    auto& layer = a.layer[l];
    const auto& place = places_.layer[l];
    copy_stream(input, layer.x, layer.x_between);
    add_product(input, shape_.width, layer.attended, place.attention_out, layer.x_between);

    normalize(input, layer.x_between, place.mlp_gain, layer.mlp_norm, layer.mlp_inverse_rms);
    multiply(input, shape_.width, shape_.mlp_width, layer.mlp_norm, place.mlp_up, layer.hidden);
    const auto hidden = static_cast<std::size_t>(input.extent.rows()) * static_cast<std::size_t>(shape_.mlp_width);
    backend_.run(ReluForward<P>{.size = hidden, .x = layer.hidden});
    typename P::Real* next = l + 1 < shape_.layers ? a.layer[l + 1].x : a.x;
    copy_stream(input, layer.x_between, next);
    add_product(input, shape_.mlp_width, layer.hidden, place.mlp_down, next);
}

template <typename P>
void Transformer<P>::classify(const PassInput<P>& input, Activations<P>& a) const {
    normalize(input, a.x, places_.final_gain, a.norm, a.inverse_rms);
    backend_.run(LinearForward<P>{.extent = input.extent,
                                  .in = shape_.width,
                                  .out = shape_.vocabulary,
                                  .x = a.norm,
                                  .weight = input.operands + places_.head,
                                  .parameter_stride = input.parameter_stride,
                                  .y_real = a.logits});
}

// ---- passes ---------------------------------------------------------------------------------------------------------

template <typename P>
void Transformer<P>::forward(const PassInput<P>& input, Activations<P>& a) const {
    embed(input, a.layer[0].x, 0);
    for (int l = 0; l < shape_.layers; ++l) {
        auto& layer = a.layer[l];
        project_qkv(input, a, l);
        backend_.run(AttentionForward<P>{.extent = input.extent,
                                         .width = shape_.width,
                                         .heads = shape_.heads,
                                         .qkv = layer.qkv,
                                         .y = layer.attended,
                                         .probabilities = layer.probabilities});
        finish_layer(input, a, l);
    }
    classify(input, a);
}

template <typename P>
void Transformer<P>::fill_caches(const PassInput<P>& input, Activations<P>& a, const Caches<P>& caches,
                                 int copies) const {
    embed(input, a.layer[0].x, 0);
    for (int l = 0; l < shape_.layers; ++l) {
        auto& layer = a.layer[l];
        const std::size_t cache = static_cast<std::size_t>(l) * caches.layer_stride;
        project_qkv(input, a, l);
        backend_.run(FillCache<P>{.extent = input.extent,
                                  .width = shape_.width,
                                  .copies = copies,
                                  .context = caches.row_tokens,
                                  .qkv = layer.qkv,
                                  .keys = caches.keys + cache,
                                  .values = caches.values + cache});
        if (l + 1 == shape_.layers) {
            return;  // nobody asks what the last layer makes of the prompt
        }
        backend_.run(AttentionForward<P>{.extent = input.extent,
                                         .width = shape_.width,
                                         .heads = shape_.heads,
                                         .qkv = layer.qkv,
                                         .y = layer.attended,
                                         .probabilities = layer.probabilities});
        finish_layer(input, a, l);
    }
}

template <typename P>
void Transformer<P>::decode(const PassInput<P>& input, Activations<P>& a, const Caches<P>& caches, int position) const {
    embed(input, a.layer[0].x, position);
    for (int l = 0; l < shape_.layers; ++l) {
        auto& layer = a.layer[l];
        const std::size_t cache = static_cast<std::size_t>(l) * caches.layer_stride;
        project_qkv(input, a, l);
        backend_.run(AttentionDecode<P>{.extent = input.extent,
                                        .width = shape_.width,
                                        .heads = shape_.heads,
                                        .context = caches.row_tokens,
                                        .position = position,
                                        .qkv = layer.qkv,
                                        .keys = caches.keys + cache,
                                        .values = caches.values + cache,
                                        .y = layer.attended,
                                        .probabilities = layer.probabilities});
        finish_layer(input, a, l);
    }
    classify(input, a);
}

template <typename P>
void Transformer<P>::backward(const PassInput<P>& input, Activations<P>& a, typename P::Real* gradient,
                              std::size_t gradient_stride) const {
    const Extent& extent = input.extent;
    const auto rows = static_cast<std::size_t>(extent.rows());
    const auto width = static_cast<std::size_t>(shape_.width);

    /// dx = dy W and dW = dy^T x of y = x W^T.
    const auto through_product = [&](int in, int out, const typename P::Operand* x, std::size_t matrix,
                                     const typename P::Operand* dy, typename P::Operand* dx) {
        backend_.run(LinearWeightGradient<P>{.extent = extent,
                                             .in = in,
                                             .out = out,
                                             .dy = dy,
                                             .x = x,
                                             .weight_gradient = gradient + matrix,
                                             .gradient_stride = gradient_stride});
        backend_.run(LinearInputGradient<P>{.extent = extent,
                                            .in = in,
                                            .out = out,
                                            .dy = dy,
                                            .weight = input.operands + matrix,
                                            .parameter_stride = input.parameter_stride,
                                            .dx = dx});
    };
    /// a.dx += gradient of the stream x, given a.dnarrow, the gradient of norm(x).
    const auto through_norm = [&](const typename P::Real* x, std::size_t gain, const typename P::Real* inverse_rms) {
        backend_.run(RmsNormBackward<P>{.extent = extent,
                                        .width = shape_.width,
                                        .dy = a.dnarrow,
                                        .x = x,
                                        .gain = input.reals + gain,
                                        .parameter_stride = input.parameter_stride,
                                        .inverse_rms = inverse_rms,
                                        .dx = a.dx,
                                        .gain_gradient = gradient + gain,
                                        .gradient_stride = gradient_stride,
                                        .scratch = a.norm_scratch});
    };
    const auto round_dx = [&] {
        if constexpr (!operands_are_reals<P>) {
            backend_.run(ToOperand<P>{.size = rows * width, .x = a.dx, .y = a.dx_operand});
        }
    };

    through_product(shape_.width, shape_.vocabulary, a.norm, places_.head, a.dlogits, a.dnarrow);
    backend_.clear(a.dx, rows * width * sizeof(typename P::Real));
    through_norm(a.x, places_.final_gain, a.inverse_rms);
    for (int l = shape_.layers; l-- > 0;) {
        auto& layer = a.layer[l];
        const auto& place = places_.layer[l];

        round_dx();
        through_product(shape_.mlp_width, shape_.width, layer.hidden, place.mlp_down, a.dx_operand, a.dwide);
        backend_.run(ReluBackward<P>{.size = rows * static_cast<std::size_t>(shape_.mlp_width),
                                     .activation = layer.hidden,
                                     .gradient = a.dwide});
        through_product(shape_.width, shape_.mlp_width, layer.mlp_norm, place.mlp_up, a.dwide, a.dnarrow);
        through_norm(layer.x_between, place.mlp_gain, layer.mlp_inverse_rms);

        round_dx();
        through_product(shape_.width, shape_.width, layer.attended, place.attention_out, a.dx_operand, a.dnarrow);
        backend_.run(AttentionBackward<P>{.extent = extent,
                                          .width = shape_.width,
                                          .heads = shape_.heads,
                                          .qkv = layer.qkv,
                                          .probabilities = layer.probabilities,
                                          .dy = a.dnarrow,
                                          .dqkv = a.dwide,
                                          .scratch = a.attention_scratch});
        through_product(shape_.width, 3 * shape_.width, layer.attention_norm, place.qkv, a.dwide, a.dnarrow);
        through_norm(layer.x, place.attention_gain, layer.attention_inverse_rms);
    }
    backend_.run(EmbeddingBackward<P>{.extent = extent,
                                      .width = shape_.width,
                                      .vocabulary = shape_.vocabulary,
                                      .context = shape_.context,
                                      .tokens = input.tokens,
                                      .token_stride = input.token_stride,
                                      .dx = a.dx,
                                      .token_gradient = gradient + places_.token_table,
                                      .position_gradient = gradient + places_.position_table,
                                      .gradient_stride = gradient_stride});
}

template class Workspace<Float32>;
template class Workspace<Float64>;
template class Workspace<Mixed>;
template class Transformer<Float32>;
template class Transformer<Float64>;
template class Transformer<Mixed>;

}  // namespace millrace
