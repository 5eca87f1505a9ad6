// How the fused generation kernel divides its sequences among blocks and a block's shared memory among their needs.
//
// Shapes it takes: width and MLP width multiples of 8, width a multiple of the number of heads, parameters of every
// replica at multiples of 8 numbers, and a prompt of at least one and fewer than `context` tokens. Weights lie in
// shared memory if they fit, and are read from the device's memory (its L2 cache, in practice) if not; so do the
// caches of keys and values. Where not even the rest fits, there is no fused generation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/generate.h"

namespace millrace {

/// Warps of a block. Each decodes one sequence; together they go through the prompts.
inline constexpr int generation_warps = 8;

/// Numbers are moved 16 bytes at a time.
template <typename Operand>
inline constexpr int chunk_numbers = static_cast<int>(16 / sizeof(Operand));

/// A matrix row in shared memory is longer than in the model by one chunk where that makes its number of chunks odd:
/// then the rows that the lanes of a warp read together begin in different banks.
template <typename Operand>
MILLRACE_HOST_DEVICE constexpr int padded_row(int numbers) {
    const int chunks = numbers / chunk_numbers<Operand>;
    return (chunks % 2 == 0 ? chunks + 1 : chunks) * chunk_numbers<Operand>;
}

/// Places in a block's shared memory, in bytes.
struct GenerationLayout {
    unsigned blocks = 0;
    int prompts_per_block = 1;  ///< of a block that has several; else
    int blocks_per_prompt = 1;  ///< of a prompt whose copies need several blocks
    bool weights_shared = false;
    bool cache_shared = false;
    std::size_t cache = 0;     ///< Operand [warps][layers][2][context][padded width]: keys and values
    std::size_t residual = 0;  ///< Real [prompt rows][width]: x of the prompts' tokens; one row per warp at the least
    std::size_t queries = 0;   ///< Operand [prompt rows][width]
    std::size_t logits = 0;    ///< Real [warps][vocabulary]
    std::size_t scores = 0;    ///< Real [warps][context]
    std::size_t normed = 0;    ///< Operand [warps][width]: what goes into a product
    std::size_t products = 0;  ///< Operand [warps][max(3 width, MLP width)]: what comes out
    std::size_t shared_bytes = 0;
};

/// Numbers of all matrices in shared memory.
template <typename P>
std::size_t generation_weight_numbers(const Generate<P>& op) {
    using Operand = typename P::Operand;
    const auto from_width = static_cast<std::size_t>(padded_row<Operand>(op.width));
    const auto from_mlp = static_cast<std::size_t>(padded_row<Operand>(op.mlp_width));
    const auto width = static_cast<std::size_t>(op.width);
    const std::size_t layer =
        (4 * width + static_cast<std::size_t>(op.mlp_width)) * from_width + width * from_mlp;  // qkv, out, up; down
    return static_cast<std::size_t>(op.layers) * layer + static_cast<std::size_t>(op.vocabulary) * from_width;
}

template <typename P>
bool takes_shape(const Generate<P>& op) {
    constexpr std::size_t multiple = 8;
    const auto even = [](std::size_t number) { return number % multiple == 0; };
    bool places_even = even(op.places.head) && even(op.places.size);
    for (int layer = 0; layer < op.layers && layer < most_layers; ++layer) {
        const ParameterPlaces::Layer& places = op.places.layer[layer];
        places_even = places_even && even(places.qkv) && even(places.attention_out) && even(places.mlp_up) &&
                      even(places.mlp_down);
    }
    return places_even && op.layers >= 0 && op.layers <= most_layers && op.width > 0 && op.width % 8 == 0 &&
           op.mlp_width > 0 && op.mlp_width % 8 == 0 && op.heads > 0 && op.width % op.heads == 0 && op.vocabulary > 0 &&
           op.copies > 0 && op.prompt_tokens > 0 && op.prompt_tokens < op.context;
}

/// Fills `layout`; false if the kernel does not take the operation with so much shared memory per block.
template <typename P>
bool plan_generation(const Generate<P>& op, std::size_t most_shared_bytes, GenerationLayout& layout) {
    using Real = typename P::Real;
    using Operand = typename P::Operand;
    if (!takes_shape(op)) {
        return false;
    }
    layout = {};
    unsigned blocks_per_replica = 0;
    if (op.copies >= generation_warps) {
        layout.blocks_per_prompt = (op.copies + generation_warps - 1) / generation_warps;
        blocks_per_replica = static_cast<unsigned>(op.prompts * layout.blocks_per_prompt);
    } else {
        layout.prompts_per_block = generation_warps / op.copies;
        blocks_per_replica =
            static_cast<unsigned>((op.prompts + layout.prompts_per_block - 1) / layout.prompts_per_block);
    }
    layout.blocks = static_cast<unsigned>(op.replicas) * blocks_per_replica;

    const auto place = [&](std::size_t numbers, std::size_t bytes_each) {
        const std::size_t start = layout.shared_bytes;
        layout.shared_bytes += (numbers * bytes_each + 15) / 16 * 16;
        return start;
    };
    constexpr auto warps = static_cast<std::size_t>(generation_warps);
    const auto width = static_cast<std::size_t>(op.width);
    const auto context = static_cast<std::size_t>(op.context);
    const int prompt_rows = layout.prompts_per_block * op.prompt_tokens;
    const auto rows = static_cast<std::size_t>(prompt_rows > generation_warps ? prompt_rows : generation_warps);
    const auto widest = static_cast<std::size_t>(3 * op.width > op.mlp_width ? 3 * op.width : op.mlp_width);
    const auto plan = [&](bool weights_shared, bool cache_shared) {
        layout.shared_bytes = 0;
        layout.weights_shared = weights_shared;
        layout.cache_shared = cache_shared;
        if (weights_shared) {
            place(generation_weight_numbers(op), sizeof(Operand));
        }
        const auto cached =
            static_cast<std::size_t>(op.layers) * 2 * context * static_cast<std::size_t>(padded_row<Operand>(op.width));
        layout.cache = place(cache_shared ? warps * cached : 0, sizeof(Operand));
        layout.residual = place(rows * width, sizeof(Real));
        layout.queries = place(rows * width, sizeof(Operand));
        layout.logits = place(warps * static_cast<std::size_t>(op.vocabulary), sizeof(Real));
        layout.scores = place(warps * context, sizeof(Real));
        layout.normed = place(warps * width, sizeof(Operand));
        layout.products = place(warps * widest, sizeof(Operand));
        return layout.shared_bytes <= most_shared_bytes;
    };
    return plan(true, true) || plan(true, false) || plan(false, true) || plan(false, false);
}

}  // namespace millrace
