// The arguments of a whole generation: all layers and all steps of many sequences in one operation.
#pragma once

#include "kernels/ops.h"

namespace millrace {

inline constexpr int most_layers = 16;

/// Where the parameters of a replica lie, as distances from its first number. Matrices are [out][in].
struct ParameterPlaces {
    std::size_t token_table = 0;     ///< [V][D]
    std::size_t position_table = 0;  ///< [context][D]
    struct Layer {
        std::size_t attention_gain = 0;  ///< [D]
        std::size_t qkv = 0;             ///< [3 D][D]
        std::size_t attention_out = 0;   ///< [D][D]
        std::size_t mlp_gain = 0;        ///< [D]
        std::size_t mlp_up = 0;          ///< [F][D]
        std::size_t mlp_down = 0;        ///< [D][F]
    } layer[most_layers];
    std::size_t final_gain = 0;  ///< [D]
    std::size_t head = 0;        ///< [V][D]
    std::size_t size = 0;        ///< P
};

/// Continues every prompt with `copies` sampled answers, as FillCache and repeated AttentionDecode and Sample would.
template <typename P>
struct Generate {
    int replicas = 1;
    int prompts = 0;  ///< per replica
    int copies = 1;   ///< B = prompts * copies; sequence b continues prompt b / copies
    int layers = 0;
    int width = 0;
    int heads = 0;
    int mlp_width = 0;
    int vocabulary = 0;
    int context = 0;  ///< prompt and answer together; the row length of `tokens`
    int prompt_tokens = 0;
    SamplingRule rule;
    ParameterPlaces places;
    const typename P::Real* weights = nullptr;      ///< [S][P]: gains and embedding tables are read from here
    const typename P::Operand* operands = nullptr;  ///< [S][P]: matrices are read from here
    const std::uint64_t* seed = nullptr;            ///< [S]
    const std::uint64_t* sequence_id = nullptr;     ///< [S][B]
    Token* tokens = nullptr;        ///< [S][B][context]; the prompts are there already, the answers are written
    std::int32_t* ended = nullptr;  ///< [S][B], 0 before, 1 after the end token
    typename P::Real* log_probability = nullptr;  ///< [S][B][context]: at [t] of the token drawn for position t
    typename P::Operand* keys = nullptr;          ///< [layers][S][B][context][D], scratch
    typename P::Operand* values = nullptr;
};

}  // namespace millrace
