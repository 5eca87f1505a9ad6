// The one list of kernel cases: every operation at shapes that are round and shapes that are not.
//
// A case fills its arrays, runs its operation, and says what is the gradient of what. The tests run the list on every
// backend: against central differences, against double precision, replica by replica.
#pragma once

#include <string>
#include <vector>

#include "tests/kernels/workbench.h"

namespace millrace::test {

struct Shape {
    int sequences = 3;
    int tokens = 5;
    int width = 8;
    int heads = 2;
    int mlp = 16;
    int vocabulary = 7;
    int context = 6;

    std::size_t rows() const { return static_cast<std::size_t>(sequences) * static_cast<std::size_t>(tokens); }
    std::string text() const {
        return "B " + std::to_string(sequences) + " T " + std::to_string(tokens) + " D " + std::to_string(width) +
               " H " + std::to_string(heads) + " F " + std::to_string(mlp) + " V " + std::to_string(vocabulary);
    }
};

/// `output` summed with weights `output_slope` is a function whose gradient by `input` the operation leaves in
/// `gradient`.
struct GradientClaim {
    std::string input;
    std::string gradient;
    std::string output;
    std::string output_slope;
};

template <typename P>
struct KernelCase {
    std::string name;
    Shape shape;
    void (*run)(Workbench<P>&, const Shape&);
    std::vector<GradientClaim> claims;
};

/// Parameters of replicas lie this many numbers further apart than they take, as they do in a whole model.
inline constexpr std::size_t parameter_gap = 3;

namespace cases {

inline std::size_t size(int a, int b = 1, int c = 1, int d = 1) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c) *
           static_cast<std::size_t>(d);
}

template <typename P>
Extent extent(const Workbench<P>& bench, const Shape& shape) {
    return {bench.replicas(), shape.sequences, shape.tokens};
}

template <typename P>
void embedding(Workbench<P>& bench, const Shape& shape) {
    const std::size_t token_stride = size(shape.context);
    const std::size_t tables = size(shape.vocabulary + shape.context, shape.width);
    const std::size_t positions = size(shape.vocabulary, shape.width);
    const Token* tokens = bench.integers("tokens", size(shape.sequences) * token_stride, shape.vocabulary);
    const auto* weights = bench.real("tables", tables + parameter_gap);
    bench.backend().run(EmbeddingForward<P>{.extent = extent(bench, shape),
                                            .width = shape.width,
                                            .tokens = tokens,
                                            .token_stride = token_stride,
                                            .token_table = weights,
                                            .position_table = weights + positions,
                                            .parameter_stride = tables + parameter_gap,
                                            .x = bench.real_output("x", shape.rows() * size(shape.width))});
    auto* gradient = bench.changing_real("tables_gradient", tables + parameter_gap);
    bench.backend().run(EmbeddingBackward<P>{.extent = extent(bench, shape),
                                             .width = shape.width,
                                             .vocabulary = shape.vocabulary,
                                             .context = shape.context,
                                             .tokens = tokens,
                                             .token_stride = token_stride,
                                             .dx = bench.real("dx", shape.rows() * size(shape.width)),
                                             .token_gradient = gradient,
                                             .position_gradient = gradient + positions,
                                             .gradient_stride = tables + parameter_gap});
}

template <typename P>
void embedding_at_position(Workbench<P>& bench, const Shape& shape) {
    const std::size_t stride = size(shape.vocabulary + shape.context, shape.width) + parameter_gap;
    const auto* weights = bench.real("tables", stride);
    bench.backend().run(
        EmbeddingForward<P>{.extent = {bench.replicas(), shape.sequences, 1},
                            .width = shape.width,
                            .first_position = shape.context - 1,
                            .tokens = bench.integers("tokens", size(shape.sequences, 2), shape.vocabulary),
                            .token_stride = 2,
                            .token_table = weights,
                            .position_table = weights + size(shape.vocabulary, shape.width),
                            .parameter_stride = stride,
                            .x = bench.real_output("x", size(shape.sequences, shape.width))});
}

template <typename P>
void rms_norm(Workbench<P>& bench, const Shape& shape) {
    const std::size_t numbers = shape.rows() * size(shape.width);
    const std::size_t stride = size(shape.width) + parameter_gap;
    const auto* x = bench.real("x", numbers);
    const auto* gain = bench.real("gain", stride, 0.5, 1.5);
    auto* inverse_rms = bench.real_output("inverse_rms", shape.rows());
    bench.backend().run(RmsNormForward<P>{.extent = extent(bench, shape),
                                          .width = shape.width,
                                          .x = x,
                                          .gain = gain,
                                          .parameter_stride = stride,
                                          .y = bench.operand_output("y", numbers),
                                          .inverse_rms = inverse_rms});
    const std::size_t scratch = bench.backend().rms_norm_scratch(extent(bench, shape), shape.width);
    bench.backend().run(RmsNormBackward<P>{.extent = extent(bench, shape),
                                           .width = shape.width,
                                           .dy = bench.operand("dy", numbers),
                                           .x = x,
                                           .gain = gain,
                                           .parameter_stride = stride,
                                           .inverse_rms = inverse_rms,
                                           .dx = bench.changing_real("dx", numbers),
                                           .gain_gradient = bench.changing_real("gain_gradient", stride),
                                           .gradient_stride = stride,
                                           .scratch = bench.scratch("scratch", scratch)});
}

template <typename P>
void attention(Workbench<P>& bench, const Shape& shape) {
    const std::size_t numbers = shape.rows() * size(shape.width);
    const std::size_t scores = shape.rows() * size(shape.heads, shape.tokens);
    const auto* qkv = bench.operand("qkv", 3 * numbers, -2, 2);
    auto* probabilities = bench.operand_output("probabilities", scores);
    bench.backend().run(AttentionForward<P>{.extent = extent(bench, shape),
                                            .width = shape.width,
                                            .heads = shape.heads,
                                            .qkv = qkv,
                                            .y = bench.operand_output("y", numbers),
                                            .probabilities = probabilities});
    bench.backend().run(
        AttentionBackward<P>{.extent = extent(bench, shape),
                             .width = shape.width,
                             .heads = shape.heads,
                             .qkv = qkv,
                             .probabilities = probabilities,
                             .dy = bench.operand("dy", numbers),
                             .dqkv = bench.operand_output("dqkv", 3 * numbers),
                             .scratch = bench.scratch("scratch", scores * static_cast<std::size_t>(bench.replicas()))});
}

template <typename P>
void fill_cache(Workbench<P>& bench, const Shape& shape) {
    constexpr int copies = 3;
    const std::size_t cache = size(shape.sequences, copies, shape.context, shape.width);
    bench.backend().run(FillCache<P>{.extent = extent(bench, shape),
                                     .width = shape.width,
                                     .copies = copies,
                                     .context = shape.context,
                                     .qkv = bench.operand("qkv", 3 * shape.rows() * size(shape.width)),
                                     .keys = bench.changing_operand("keys", cache),
                                     .values = bench.changing_operand("values", cache)});
}

template <typename P>
void attention_decode(Workbench<P>& bench, const Shape& shape) {
    const std::size_t cache = size(shape.sequences, shape.context, shape.width);
    bench.backend().run(
        AttentionDecode<P>{.extent = {bench.replicas(), shape.sequences, 1},
                           .width = shape.width,
                           .heads = shape.heads,
                           .context = shape.context,
                           .position = shape.tokens - 1,
                           .qkv = bench.operand("qkv", 3 * size(shape.sequences, shape.width), -2, 2),
                           .keys = bench.changing_operand("keys", cache, -2, 2),
                           .values = bench.changing_operand("values", cache, -2, 2),
                           .y = bench.operand_output("y", size(shape.sequences, shape.width)),
                           .probabilities = bench.operand_scratch(
                               "probabilities", size(bench.replicas(), shape.sequences, shape.heads, shape.context))});
}

template <typename P>
void relu(Workbench<P>& bench, const Shape& shape) {
    const std::size_t numbers = shape.rows() * size(shape.mlp);
    const std::size_t all = numbers * static_cast<std::size_t>(bench.replicas());
    auto* x = bench.changing_operand("x", numbers);
    bench.backend().run(ReluForward<P>{.size = all, .x = x});
    bench.backend().run(
        ReluBackward<P>{.size = all, .activation = x, .gradient = bench.changing_operand("dy", numbers)});
}

template <typename P>
void linear(Workbench<P>& bench, const Shape& shape, int in, int out) {
    const std::size_t stride = size(in, out) + parameter_gap;
    const auto* x = bench.operand("x", shape.rows() * size(in));
    const auto* weight = bench.operand("weight", stride);
    const auto* dy = bench.operand("dy", shape.rows() * size(out));
    LinearForward<P> forward{.extent = extent(bench, shape),
                             .in = in,
                             .out = out,
                             .x = x,
                             .weight = weight,
                             .parameter_stride = stride,
                             .y = bench.operand_output("y", shape.rows() * size(out))};
    bench.backend().run(forward);
    forward.y = nullptr;
    forward.y_real = bench.real_output("y_real", shape.rows() * size(out));
    bench.backend().run(forward);
    forward.y_real = bench.changing_real("sum", shape.rows() * size(out));
    forward.accumulate = true;
    bench.backend().run(forward);
    bench.backend().run(LinearInputGradient<P>{.extent = extent(bench, shape),
                                               .in = in,
                                               .out = out,
                                               .dy = dy,
                                               .weight = weight,
                                               .parameter_stride = stride,
                                               .dx = bench.operand_output("dx", shape.rows() * size(in))});
    bench.backend().run(LinearWeightGradient<P>{.extent = extent(bench, shape),
                                                .in = in,
                                                .out = out,
                                                .dy = dy,
                                                .x = x,
                                                .weight_gradient = bench.changing_real("weight_gradient", stride),
                                                .gradient_stride = stride});
}
template <typename P>
void linear_qkv(Workbench<P>& bench, const Shape& shape) {
    linear(bench, shape, shape.width, 3 * shape.width);
}
template <typename P>
void linear_up(Workbench<P>& bench, const Shape& shape) {
    linear(bench, shape, shape.width, shape.mlp);
}
template <typename P>
void linear_down(Workbench<P>& bench, const Shape& shape) {
    linear(bench, shape, shape.mlp, shape.width);
}
template <typename P>
void linear_head(Workbench<P>& bench, const Shape& shape) {
    linear(bench, shape, shape.width, shape.vocabulary);
}

template <typename P>
void to_operand(Workbench<P>& bench, const Shape& shape) {
    const std::size_t numbers = shape.rows() * size(shape.width);
    bench.backend().run(ToOperand<P>{.size = numbers * static_cast<std::size_t>(bench.replicas()),
                                     .x = bench.real("x", numbers),
                                     .y = bench.operand_output("y", numbers)});
}

template <typename P>
void classifier(Workbench<P>& bench, const Shape& shape) {
    const std::size_t numbers = shape.rows() * size(shape.vocabulary);
    const std::size_t stride = size(shape.tokens) + 2;
    bench.backend().run(
        Classifier<P>{.extent = extent(bench, shape),
                      .vocabulary = shape.vocabulary,
                      .logits = bench.real("logits", numbers, -5, 5),
                      .targets = bench.integers("targets", size(shape.sequences) * stride, shape.vocabulary),
                      .target_stride = stride,
                      .log_probability = bench.real_output("log_probability", shape.rows()),
                      .entropy = bench.real_output("entropy", shape.rows()),
                      .weight = bench.real("weight", shape.rows()),
                      .dlogits = bench.operand_output("dlogits", numbers)});
}

template <typename P>
void objective(Workbench<P>& bench, const Shape& shape, ObjectiveRule rule) {
    constexpr int first_answer_row = 2;
    bench.backend().run(Objective<P>{
        .extent = extent(bench, shape),
        .rule = rule,
        .scale = 0.25,
        .first_answer_row = first_answer_row,
        .answer_tokens = bench.integers("answer_tokens", size(shape.sequences), shape.tokens - first_answer_row + 1, 1),
        .advantage = bench.real("advantage", size(shape.sequences)),
        .log_probability = bench.real("log_probability", shape.rows(), -1.5, 0),
        .old_log_probability = bench.real("old_log_probability", shape.rows(), -1.5, 0),
        .entropy = bench.real("entropy", shape.rows(), 0, 1),
        .weight = bench.real_output("weight", shape.rows()),
        .statistics = bench.real_output("statistics", size(shape.sequences) * sequence_statistics)});
}
template <typename P>
void objective_supervised(Workbench<P>& bench, const Shape& shape) {
    objective(bench, shape, {.kind = ObjectiveKind::supervised});
}
template <typename P>
void objective_grpo(Workbench<P>& bench, const Shape& shape) {
    objective(bench, shape, {.kind = ObjectiveKind::grpo});
}
template <typename P>
void objective_grpo_sequence(Workbench<P>& bench, const Shape& shape) {
    objective(bench, shape, {.kind = ObjectiveKind::grpo, .ratio = RatioKind::sequence});
}
template <typename P>
void objective_asymre(Workbench<P>& bench, const Shape& shape) {
    objective(bench, shape, {.kind = ObjectiveKind::asymre});
}
template <typename P>
void objective_reinforce(Workbench<P>& bench, const Shape& shape) {
    objective(bench, shape, {.kind = ObjectiveKind::reinforce});
}

template <typename P>
void sum_parts(Workbench<P>& bench, const Shape& shape) {
    // The parts are [parts][S][P]: replicas lie inside, so this case has one array a part.
    constexpr int parts = 3;
    const std::size_t numbers = size(shape.width, shape.mlp) + 5;
    const std::size_t all = numbers * static_cast<std::size_t>(bench.replicas());
    bench.backend().run(SumParts<P>{.parts = 1,
                                    .part_stride = all,
                                    .size = all,
                                    .part = bench.real("one", numbers),
                                    .sum = bench.real_output("sum_of_one", numbers)});
    if (bench.replicas() == 1) {
        bench.backend().run(SumParts<P>{.parts = parts,
                                        .part_stride = all + 1,
                                        .size = all,
                                        .part = bench.real("part", parts * (all + 1)),
                                        .sum = bench.real_output("sum", all)});
    }
}

template <typename P>
void global_norm(Workbench<P>& bench, const Shape& shape) {
    const std::size_t parameters = 20 * size(shape.width, shape.mlp) + 5;  // several stretches, the last one short
    bench.backend().run(
        GlobalNorm<P>{.replicas = bench.replicas(),
                      .parameters = parameters,
                      .gradient = bench.real("gradient", parameters),
                      .norm = bench.real_output("norm", 1),
                      .scratch = bench.scratch("scratch", bench.backend().norm_scratch(bench.replicas(), parameters))});
}

template <typename P>
void adamw(Workbench<P>& bench, const Shape& shape) {
    using Real = typename P::Real;
    const std::size_t parameters = size(shape.width, shape.mlp) + 5;
    bench.backend().run(
        AdamW<P>{.replicas = bench.replicas(),
                 .parameters = parameters,
                 .weight_decay = 0.1,
                 .max_norm = 1.0,
                 .step = bench.shared("step", std::vector<AdamWStep<Real>>{{Real(0.01), Real(1.25), Real(1.5)}}),
                 .norm = bench.real("norm", 1, 0.5, 2),
                 .gradient = bench.real("gradient", parameters),
                 .first = bench.changing_real("first", parameters, -0.1, 0.1),
                 .second = bench.changing_real("second", parameters, 0, 0.1),
                 .weight = bench.changing_real("weight", parameters),
                 .operand = bench.operand_output("operand", parameters)});
}

template <typename P>
void sample(Workbench<P>& bench, const Shape& shape) {
    const std::size_t stride = size(shape.context);
    bench.backend().run(
        Sample<P>{.extent = {bench.replicas(), shape.sequences, 1},
                  .vocabulary = shape.vocabulary,
                  .position = shape.tokens,
                  .rule = {.temperature = 0.75, .end = 1, .pad = 2},
                  .seed = bench.identifiers("seed", 1),
                  .sequence_id = bench.identifiers("sequence_id", size(shape.sequences)),
                  .logits = bench.real("logits", size(shape.sequences, shape.vocabulary), -2, 2),
                  .ended = bench.changing_integers("ended", size(shape.sequences), 2),
                  .token = bench.changing_integers("token", size(shape.sequences) * stride, shape.vocabulary),
                  .token_stride = stride,
                  .log_probability = bench.changing_real("log_probability", size(shape.sequences) * stride),
                  .log_probability_stride = stride});
}

}  // namespace cases

/// The default model's, one with nothing round about it, one with wide heads and a large vocabulary, one single token.
inline std::vector<Shape> case_shapes() {
    return {
        {.sequences = 4, .tokens = 17, .width = 32, .heads = 2, .mlp = 128, .vocabulary = 20, .context = 18},
        {.sequences = 3, .tokens = 5, .width = 21, .heads = 3, .mlp = 50, .vocabulary = 13, .context = 7},
        {.sequences = 2, .tokens = 33, .width = 128, .heads = 2, .mlp = 96, .vocabulary = 70, .context = 40},
        {.sequences = 5, .tokens = 3, .width = 64, .heads = 4, .mlp = 256, .vocabulary = 33, .context = 3},
    };
}

/// `shapes`: a slow backend (an emulated one) may leave some out.
template <typename P>
std::vector<KernelCase<P>> kernel_cases(const std::vector<Shape>& shapes = case_shapes()) {
    std::vector<KernelCase<P>> list;
    for (const Shape& shape : shapes) {
        const auto add = [&](const char* name, void (*run)(Workbench<P>&, const Shape&),
                             std::vector<GradientClaim> claims = {}) {
            list.push_back({std::string(name) + " " + shape.text(), shape, run, std::move(claims)});
        };
        add("embedding", cases::embedding<P>, {{"tables", "tables_gradient", "x", "dx"}});
        add("embedding_at_position", cases::embedding_at_position<P>);
        add("rms_norm", cases::rms_norm<P>, {{"x", "dx", "y", "dy"}, {"gain", "gain_gradient", "y", "dy"}});
        add("attention", cases::attention<P>, {{"qkv", "dqkv", "y", "dy"}});
        add("fill_cache", cases::fill_cache<P>);
        add("attention_decode", cases::attention_decode<P>);
        add("relu", cases::relu<P>, {{"x", "dy", "x", "dy"}});
        const std::vector<GradientClaim> linear{{"x", "dx", "y", "dy"}, {"weight", "weight_gradient", "y", "dy"}};
        add("linear_qkv", cases::linear_qkv<P>, linear);
        add("linear_up", cases::linear_up<P>, linear);
        add("linear_down", cases::linear_down<P>, linear);
        add("linear_head", cases::linear_head<P>, linear);
        add("to_operand", cases::to_operand<P>);
        add("classifier", cases::classifier<P>, {{"logits", "dlogits", "log_probability", "weight"}});
        add("objective_supervised", cases::objective_supervised<P>);
        add("objective_grpo", cases::objective_grpo<P>);
        add("objective_grpo_sequence", cases::objective_grpo_sequence<P>);
        add("objective_asymre", cases::objective_asymre<P>);
        add("objective_reinforce", cases::objective_reinforce<P>);
        add("sum_parts", cases::sum_parts<P>);
        add("global_norm", cases::global_norm<P>);
        add("adamw", cases::adamw<P>);
        add("sample", cases::sample<P>);
    }
    return list;
}

/// Runs a case on `backend` and returns what it left.
template <typename P>
Outcome run_case(const KernelCase<P>& one, Backend<P>& backend, const Setting& setting = {}) {
    Workbench<P> bench(backend, setting);
    one.run(bench, one.shape);
    return bench.outcome();
}

}  // namespace millrace::test
