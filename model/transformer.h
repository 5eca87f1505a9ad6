// The transformer, forward and backward, on any backend:
//
//     x = token_table[token] + position_table[position]
//     for each layer:  x += attention_out attention(qkv norm(x));  x += mlp_down relu(mlp_up norm(x))
//     logits = head norm(x)
#pragma once

#include <cstddef>

#include "kernels/backend.h"
#include "kernels/generate.h"
#include "model/backend_array.h"
#include "model/shape.h"

namespace millrace {

/// What a pass reads: tokens and weights. Pointers are to the first replica and sequence of the pass.
template <typename P>
struct PassInput {
    Extent extent;
    const Token* tokens = nullptr;  ///< [S][B], `token_stride` apart
    std::size_t token_stride = 0;
    const typename P::Real* reals = nullptr;        ///< [S], `parameter_stride` apart
    const typename P::Operand* operands = nullptr;  ///< the same numbers for matrix products
    std::size_t parameter_stride = 0;
};

/// Pointers to the activations of a pass with R rows (tokens of all its sequences).
template <typename P>
struct Activations {
    using Real = typename P::Real;
    using Operand = typename P::Operand;

    struct Layer {
        Real* x = nullptr;                      ///< [R][D] before the attention
        Operand* attention_norm = nullptr;      ///< [R][D]
        Real* attention_inverse_rms = nullptr;  ///< [R]
        Operand* qkv = nullptr;                 ///< [R][3][D]
        Operand* probabilities = nullptr;       ///< [S][B][H][T][T], when decoding [S][B][H][positions of a cache]
        Operand* attended = nullptr;            ///< [R][D]
        Real* x_between = nullptr;              ///< [R][D] between attention and MLP
        Operand* mlp_norm = nullptr;            ///< [R][D]
        Real* mlp_inverse_rms = nullptr;        ///< [R]
        Operand* hidden = nullptr;              ///< [R][F] after the ReLU
    } layer[most_layers];
    Real* x = nullptr;            ///< [R][D] after the last layer
    Operand* norm = nullptr;      ///< [R][D]
    Real* inverse_rms = nullptr;  ///< [R]
    Real* logits = nullptr;       ///< [R][V]

    // Only for training.
    Real* log_probability = nullptr;  ///< [R]
    Real* entropy = nullptr;          ///< [R]
    Real* weight = nullptr;           ///< [R]
    Operand* dlogits = nullptr;       ///< [R][V]
    Real* dx = nullptr;               ///< [R][D]
    Operand* dx_operand = nullptr;    ///< [R][D]; dx itself where the types are one
    Operand* dnarrow = nullptr;       ///< [R][D]: gradient of an activation of width D
    Operand* dwide = nullptr;         ///< [R][max(F, 3 D)]
    Real* norm_scratch = nullptr;
    Real* attention_scratch = nullptr;  ///< [S][B][H][T][T]
};

/// Activations for passes of up to some size, in one allocation.
template <typename P>
class Workspace {
   public:
    /// Keeps everything that the backward pass needs.
    static Workspace for_training(Backend<P>& backend, const ModelShape& shape, const Extent& largest);

    /// For prompts of an extent, each continued by `copies` sequences with `row_tokens` positions of cache. All layers
    /// share the same buffers.
    static Workspace for_generation(Backend<P>& backend, const ModelShape& shape, const Extent& prompts, int copies,
                                    int row_tokens);

    Activations<P>& activations() { return activations_; }
    /// Tells workspaces apart.
    const void* address() const { return memory_.data(); }

   private:
    struct Sizes {
        Extent extent;           ///< of the training passes
        std::size_t rows = 0;    ///< R
        std::size_t scores = 0;  ///< numbers of one layer's attention probabilities
        bool training = false;
    };
    Workspace(Backend<P>& backend, const ModelShape& shape, const Sizes& sizes);

    template <typename Divider>
    static Activations<P> lay_out(Divider& memory, const Backend<P>& backend, const ModelShape& shape,
                                  const Sizes& sizes);

    BackendArray<P, std::byte> memory_;
    Activations<P> activations_;
};

/// The layers of a generation keep the keys and values of all positions so far in caches.
template <typename P>
struct Caches {
    typename P::Operand* keys = nullptr;  ///< [layers][S][B][row_tokens][D]
    typename P::Operand* values = nullptr;
    std::size_t layer_stride = 0;  ///< numbers
    int row_tokens = 0;            ///< positions of a cache
};

template <typename P>
class Transformer {
   public:
    Transformer(Backend<P>& backend, const ModelShape& shape);

    const ModelShape& shape() const { return shape_; }
    const ParameterPlaces& places() const { return places_; }

    /// Logits of every row of whole sequences, positions from 0. Everything is kept for backward.
    void forward(const PassInput<P>& input, Activations<P>& activations) const;

    /// The gradient of sum(weight * log p[target]) by all parameters, given dlogits, right after forward with the same
    /// arguments. Overwrites gradient [S], `gradient_stride` apart, except the gaps between parameters.
    void backward(const PassInput<P>& input, Activations<P>& activations, typename P::Real* gradient,
                  std::size_t gradient_stride) const;

    /// Puts the keys and values of the input into the caches of the `copies` sequences that continue each of its
    /// sequences.
    void fill_caches(const PassInput<P>& input, Activations<P>& activations, const Caches<P>& caches, int copies) const;

    /// Logits [S][B][V] of one token of each sequence at `position`, after those that are in the caches already.
    void decode(const PassInput<P>& input, Activations<P>& activations, const Caches<P>& caches, int position) const;

   private:
    void embed(const PassInput<P>& input, typename P::Real* x, int first_position) const;
    void normalize(const PassInput<P>& input, const typename P::Real* x, std::size_t gain, typename P::Operand* y,
                   typename P::Real* inverse_rms) const;
    void multiply(const PassInput<P>& input, int in, int out, const typename P::Operand* x, std::size_t matrix,
                  typename P::Operand* y) const;
    void add_product(const PassInput<P>& input, int in, const typename P::Operand* x, std::size_t matrix,
                     typename P::Real* sum) const;
    void copy_stream(const PassInput<P>& input, const typename P::Real* from, typename P::Real* to) const;
    void project_qkv(const PassInput<P>& input, Activations<P>& activations, int layer) const;
    void finish_layer(const PassInput<P>& input, Activations<P>& activations, int layer) const;
    void classify(const PassInput<P>& input, Activations<P>& activations) const;

    Backend<P>& backend_;
    ModelShape shape_;
    ParameterPlaces places_;
};

}  // namespace millrace
