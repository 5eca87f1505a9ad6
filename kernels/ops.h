// The arguments of every numeric operation: which arrays, of what shape, with what layout.
//
// Letters used in shapes: S replicas (independent models with their own weights), B sequences per replica, T tokens of
// a sequence, D width, H heads (D = H * head width), F width of the MLP, V vocabulary, P parameters of one replica.
// Arrays are dense and row-major in the order their shape is written, unless a stride stands beside them. A pointer to
// a parameter points at replica 0; replica s is `parameter_stride` numbers further, because the parameters of a replica
// are one flat array. Gradients have the layout of the parameters and their own stride. All pointers are addresses of
// the backend's memory (`Backend::allocate`). No operation allocates, waits for the device, or reads anything but its
// arguments, so that a GPU can record a whole training step once and replay it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/precision.h"

namespace millrace {

using Token = std::int32_t;

/// S replicas of B sequences of T tokens; `rows` counts tokens.
struct Extent {
    int replicas = 1;
    int sequences = 0;
    int tokens = 1;

    MILLRACE_HOST_DEVICE int rows_per_replica() const { return sequences * tokens; }
    MILLRACE_HOST_DEVICE int rows() const { return replicas * sequences * tokens; }
};

// ---- token and position embedding: x = token_table[token] + position_table[first_position + t] ---------------------

template <typename P>
struct EmbeddingForward {
    Extent extent;
    int width = 0;
    int first_position = 0;
    const Token* tokens = nullptr;  ///< [S][B], `token_stride` apart; T consecutive ones are read of each
    std::size_t token_stride = 0;
    const typename P::Real* token_table = nullptr;     ///< [V][D]
    const typename P::Real* position_table = nullptr;  ///< [context][D]
    std::size_t parameter_stride = 0;
    typename P::Real* x = nullptr;  ///< [S][B][T][D]
};

/// Overwrites both gradients: every row of both tables is a sum over the batch in a fixed order.
template <typename P>
struct EmbeddingBackward {
    Extent extent;
    int width = 0;
    int vocabulary = 0;
    int context = 0;  ///< rows of the position table; those beyond T get zero
    const Token* tokens = nullptr;
    std::size_t token_stride = 0;
    const typename P::Real* dx = nullptr;           ///< [S][B][T][D]
    typename P::Real* token_gradient = nullptr;     ///< [V][D]
    typename P::Real* position_gradient = nullptr;  ///< [context][D]
    std::size_t gradient_stride = 0;
};

// ---- RMSNorm (Zhang, Sennrich 2019): y = x / sqrt(mean(x^2) + epsilon) * gain --------------------------------------

inline constexpr double rms_norm_epsilon = 1e-5;

template <typename P>
struct RmsNormForward {
    Extent extent;
    int width = 0;
    const typename P::Real* x = nullptr;     ///< [S][B][T][D]
    const typename P::Real* gain = nullptr;  ///< [D]
    std::size_t parameter_stride = 0;
    typename P::Operand* y = nullptr;         ///< [S][B][T][D]
    typename P::Real* inverse_rms = nullptr;  ///< [S][B][T], kept for the backward pass; null when there is none
};

/// Adds to dx (the residual stream's gradient), overwrites gain_gradient.
template <typename P>
struct RmsNormBackward {
    Extent extent;
    int width = 0;
    const typename P::Operand* dy = nullptr;  ///< [S][B][T][D]
    const typename P::Real* x = nullptr;
    const typename P::Real* gain = nullptr;
    std::size_t parameter_stride = 0;
    const typename P::Real* inverse_rms = nullptr;
    typename P::Real* dx = nullptr;             ///< [S][B][T][D]
    typename P::Real* gain_gradient = nullptr;  ///< [D]
    std::size_t gradient_stride = 0;
    typename P::Real* scratch = nullptr;  ///< Backend::rms_norm_scratch(extent, width) numbers
};

// ---- causal attention of all heads ---------------------------------------------------------------------------------

/// Training form: whole sequences at once. Scores are scaled by 1 / sqrt(D / H).
template <typename P>
struct AttentionForward {
    Extent extent;
    int width = 0;
    int heads = 0;
    const typename P::Operand* qkv = nullptr;      ///< [S][B][T][3][H][D/H]
    typename P::Operand* y = nullptr;              ///< [S][B][T][H][D/H]
    typename P::Operand* probabilities = nullptr;  ///< [S][B][H][T][T], 0 above the diagonal; never null
};

template <typename P>
struct AttentionBackward {
    Extent extent;
    int width = 0;
    int heads = 0;
    const typename P::Operand* qkv = nullptr;
    const typename P::Operand* probabilities = nullptr;
    const typename P::Operand* dy = nullptr;  ///< [S][B][T][H][D/H]
    typename P::Operand* dqkv = nullptr;      ///< [S][B][T][3][H][D/H], overwritten
    typename P::Real* scratch = nullptr;      ///< [S][B][H][T][T]; never null
};

/// Puts the keys and values of prompts into the caches of the sequences that continue them.
template <typename P>
struct FillCache {
    Extent extent;  ///< of the prompts: S replicas, B prompts, T tokens
    int width = 0;
    int copies = 1;  ///< prompt b is continued by sequences b * copies ... (b + 1) * copies - 1
    int context = 0;
    const typename P::Operand* qkv = nullptr;  ///< [S][B][T][3][D]
    typename P::Operand* keys = nullptr;       ///< [S][B * copies][context][D]
    typename P::Operand* values = nullptr;
};

/// Decode form: one new token of each sequence, at `position`. Its key and value are added to the caches.
template <typename P>
struct AttentionDecode {
    Extent extent;  ///< T = 1
    int width = 0;
    int heads = 0;
    int context = 0;
    int position = 0;                          ///< from 0; the new token attends to 0 ... position
    const typename P::Operand* qkv = nullptr;  ///< [S][B][3][H][D/H]
    typename P::Operand* keys = nullptr;       ///< [S][B][context][D]
    typename P::Operand* values = nullptr;
    typename P::Operand* y = nullptr;              ///< [S][B][D]
    typename P::Operand* probabilities = nullptr;  ///< [S][B][H][context], scratch; never null
};

// ---- ReLU, in place ------------------------------------------------------------------------------------------------

template <typename P>
struct ReluForward {
    std::size_t size = 0;
    typename P::Operand* x = nullptr;
};

/// The derivative is 1 where the activation is positive, else 0.
template <typename P>
struct ReluBackward {
    std::size_t size = 0;
    const typename P::Operand* activation = nullptr;
    typename P::Operand* gradient = nullptr;
};

// ---- matrix products: y = x W^T, with W as [out][in] ---------------------------------------------------------------

template <typename P>
struct LinearForward {
    Extent extent;
    int in = 0;
    int out = 0;
    const typename P::Operand* x = nullptr;       ///< [S][B][T][in]
    const typename P::Operand* weight = nullptr;  ///< [out][in]
    std::size_t parameter_stride = 0;
    typename P::Operand* y = nullptr;    ///< [S][B][T][out]; exactly one of y and y_real is given
    typename P::Real* y_real = nullptr;  ///< the same in full precision
    bool accumulate = false;             ///< with y_real: add to it (the residual connection)
};

/// dx = dy W.
template <typename P>
struct LinearInputGradient {
    Extent extent;
    int in = 0;
    int out = 0;
    const typename P::Operand* dy = nullptr;      ///< [S][B][T][out]
    const typename P::Operand* weight = nullptr;  ///< [out][in]
    std::size_t parameter_stride = 0;
    typename P::Operand* dx = nullptr;  ///< [S][B][T][in], overwritten
};

/// dW = dy^T x, overwritten.
template <typename P>
struct LinearWeightGradient {
    Extent extent;
    int in = 0;
    int out = 0;
    const typename P::Operand* dy = nullptr;  ///< [S][B][T][out]
    const typename P::Operand* x = nullptr;   ///< [S][B][T][in]
    typename P::Real* weight_gradient = nullptr;
    std::size_t gradient_stride = 0;
};

/// Residual-stream gradients as operands of the products that follow: y = x.
template <typename P>
struct ToOperand {
    std::size_t size = 0;
    const typename P::Real* x = nullptr;
    typename P::Operand* y = nullptr;
};

// ---- fused classifier: softmax, log-probability, entropy and gradient of the logits in one pass over a row ---------

/// With p = softmax(logits): log_probability = log p[target], entropy = -sum p log p (nats), and with weights
/// dlogits = weight * (onehot(target) - p), the gradient of sum over rows of weight * log p[target].
template <typename P>
struct Classifier {
    Extent extent;
    int vocabulary = 0;
    const typename P::Real* logits = nullptr;  ///< [S][B][T][V]
    const Token* targets = nullptr;            ///< [S][B], `target_stride` apart; T consecutive ones of each
    std::size_t target_stride = 0;
    typename P::Real* log_probability = nullptr;  ///< [S][B][T]; null when not wanted
    typename P::Real* entropy = nullptr;          ///< [S][B][T]; null when not wanted
    const typename P::Real* weight = nullptr;     ///< [S][B][T]; null without gradient
    typename P::Operand* dlogits = nullptr;       ///< [S][B][T][V]; null without gradient
};

// ---- objective: from log-probabilities to the weight of every token's gradient -------------------------------------

enum class ObjectiveKind : std::int32_t {
    supervised,  ///< maximum likelihood: weight 1
    grpo,        ///< importance ratio, clipped, times the advantage (Shao et al. 2024)
    asymre,      ///< the advantage alone, without ratio (Arnal et al. 2025): the shift is in the advantage
    reinforce,   ///< the ratio unclipped times the advantage
};
/// What stands for the importance ratio in the term of answer token t, o being the answer:
///   token:    r_t = p_t / p_t at generation;
///   sequence: the product R of all r_t, as a number, with the gradient flowing through the token's own probability
///             only: d term / d log p_t = A R. This is the token form of GSPO (Zheng et al. 2025) with R in place of
///             its |o|-th root. Averaged over the answer's tokens it is 1 / |o| of the gradient of A R itself.
enum class RatioKind : std::int32_t { token, sequence };

struct ObjectiveRule {
    ObjectiveKind kind = ObjectiveKind::grpo;
    RatioKind ratio = RatioKind::token;
    double clip_low = 0.2;   ///< the ratio's gradient vanishes below 1 - clip_low if the advantage is < 0
    double clip_high = 0.2;  ///< and above 1 + clip_high if it is > 0; infinity: no clip
};

/// What is known about the ratios of one sequence after an objective: sums over its answer's tokens. Ratios are those
/// of single tokens, whatever the rule; without old log-probabilities (`supervised`) they are 1.
enum SequenceStatistic : int {
    stat_tokens,  ///< answer tokens
    stat_abs_ratio_minus_1,
    stat_ratio,
    stat_ratio_squared,
    stat_clipped,    ///< tokens whose gradient the clip removed
    stat_log_ratio,  ///< of the sequence: log of its ratio
    stat_entropy,
    stat_log_probability,
    sequence_statistics
};

/// weight = scale * (d term / d log p) / (answer tokens) for answer tokens, 0 elsewhere. Summed over a batch with
/// scale = 1 / B this is the mean of the terms over tokens, then over sequences; the direction is that of ascent.
template <typename P>
struct Objective {
    Extent extent;
    ObjectiveRule rule;
    double scale = 1.0;
    int first_answer_row = 0;                     ///< the row (input position) that predicts the first answer token
    const std::int32_t* answer_tokens = nullptr;  ///< [S][B], EOS included
    const typename P::Real* advantage = nullptr;  ///< [S][B]; not read by `supervised`
    const typename P::Real* log_probability = nullptr;      ///< [S][B][T]
    const typename P::Real* old_log_probability = nullptr;  ///< [S][B][T], at generation; not read by `supervised`
    const typename P::Real* entropy = nullptr;              ///< [S][B][T]; null when not wanted
    typename P::Real* weight = nullptr;                     ///< [S][B][T]
    typename P::Real* statistics = nullptr;                 ///< [S][B][sequence_statistics]; null when not wanted
};

// ---- optimizer -----------------------------------------------------------------------------------------------------

/// sum[s][p] = parts[0][s][p] + parts[1][s][p] + ..., in that order.
template <typename P>
struct SumParts {
    int parts = 0;
    std::size_t part_stride = 0;
    std::size_t size = 0;  ///< S * P
    const typename P::Real* part = nullptr;
    typename P::Real* sum = nullptr;
};

/// Euclidean norm of each replica's gradient, added up in a fixed order.
template <typename P>
struct GlobalNorm {
    int replicas = 1;
    std::size_t parameters = 0;                  ///< P
    const typename P::Real* gradient = nullptr;  ///< [S][P]
    typename P::Real* norm = nullptr;            ///< [S]
    typename P::Real* scratch = nullptr;         ///< Backend::norm_scratch(replicas, parameters) numbers
};

/// Numbers of an AdamW step that change from step to step; they lie in the backend's memory.
template <typename Real>
struct AdamWStep {
    Real learning_rate;
    Real first_correction;   ///< 1 / (1 - beta1^step)
    Real second_correction;  ///< 1 / (1 - beta2^step)
};

/// Loshchilov, Hutter 2019, for ascent along `gradient` scaled down to norm `max_norm` where it is longer.
template <typename P>
struct AdamW {
    int replicas = 1;
    std::size_t parameters = 0;
    double beta1 = 0.9;
    double beta2 = 0.99;
    double epsilon = 1e-8;
    double weight_decay = 0.0;
    double max_norm = 0.0;                              ///< 0: no clipping
    const AdamWStep<typename P::Real>* step = nullptr;  ///< [1]
    const typename P::Real* norm = nullptr;             ///< [S]
    const typename P::Real* gradient = nullptr;         ///< [S][P]
    typename P::Real* first = nullptr;                  ///< [S][P]
    typename P::Real* second = nullptr;                 ///< [S][P]
    typename P::Real* weight = nullptr;                 ///< [S][P]
    typename P::Operand* operand = nullptr;  ///< [S][P] rounded copy; null where operands are the weights themselves
};

// ---- sampling ------------------------------------------------------------------------------------------------------

struct SamplingRule {
    double temperature = 1.0;
    bool greedy = false;  ///< the first of the most probable tokens, with its log-probability
    Token end = 0;        ///< ends a sequence
    Token pad = 0;        ///< what a sequence that has ended gets, with log-probability 0
};

/// Draws one token per sequence by inverting the cumulative distribution at the uniform number
/// learner_bits(seed, sample_token, sequence id, position). The log-probability is of the distribution sampled from.
template <typename P>
struct Sample {
    Extent extent;  ///< T = 1
    int vocabulary = 0;
    int position = 0;  ///< of the token that is drawn
    SamplingRule rule;
    const std::uint64_t* seed = nullptr;         ///< [S]
    const std::uint64_t* sequence_id = nullptr;  ///< [S][B]
    const typename P::Real* logits = nullptr;    ///< [S][B][V]
    std::int32_t* ended = nullptr;               ///< [S][B], set to 1 by the end token
    Token* token = nullptr;                      ///< [S][B], `token_stride` apart
    std::size_t token_stride = 0;
    typename P::Real* log_probability = nullptr;  ///< [S][B], `log_probability_stride` apart
    std::size_t log_probability_stride = 0;
};

}  // namespace millrace
