// Every backward operation against central differences of its forward operation, in double precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/compare.h"

using namespace millrace;
using namespace millrace::test;

namespace {

double weighted_sum(const std::vector<double>& numbers, const std::vector<double>& weights) {
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        sum += numbers[i] * weights[i];
    }
    return sum;
}

/// Numbers that drawn inputs have; in-place outputs are found among the inputs under the same name.
std::vector<double> input_of(const KernelCase<Float64>& one, Backend<Float64>& backend, const std::string& name) {
    Workbench<Float64> bench(backend, {});
    one.run(bench, one.shape);
    return bench.input(name);
}

void check_claim(const KernelCase<Float64>& one, const GradientClaim& claim, Backend<Float64>& backend) {
    // What a backward operation adds to starts at zero here.
    Setting setting;
    Workbench<Float64> first(backend, {});
    one.run(first, one.shape);
    if (claim.gradient != claim.output_slope && first.has_input(claim.gradient)) {
        setting.given[claim.gradient] = std::vector<double>(first.input(claim.gradient).size(), 0.0);
    }
    const Outcome outcome = run_case(one, backend, setting);
    const std::vector<double>& gradient = outcome.at(claim.gradient);
    const std::vector<double> input = input_of(one, backend, claim.input);
    const std::vector<double> slope = input_of(one, backend, claim.output_slope);
    REQUIRE(outcome.at(claim.output).size() == slope.size());

    constexpr double step = 1e-5;
    constexpr std::size_t most_elements = 16;
    const std::size_t stride = std::max<std::size_t>(1, input.size() / most_elements) | 1;  // odd: all columns in turn
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < input.size(); i += stride) {
        const auto value_at = [&](double x) {
            setting.given[claim.input] = input;
            setting.given[claim.input][i] = x;
            return weighted_sum(run_case(one, backend, setting).at(claim.output), slope);
        };
        const double difference = (value_at(input[i] + step) - value_at(input[i] - step)) / (2 * step);
        error += (difference - gradient[i]) * (difference - gradient[i]);
        size += difference * difference;
    }
    REQUIRE(size > 0);
    CHECK(std::sqrt(error / size) < 1e-6);
}

void check_all_claims(Backend<Float64>& backend, const std::vector<Shape>& shapes) {
    int claims = 0;
    for (const auto& one : kernel_cases<Float64>(shapes)) {
        CAPTURE(one.name);
        for (const GradientClaim& claim : one.claims) {
            CAPTURE(claim.input);
            check_claim(one, claim, backend);
            ++claims;
        }
    }
    CHECK(claims > 0);
}

/// The objective of one sequence as it is written in papers, by which its weights are the gradient.
double objective_value(const ObjectiveRule& rule, double advantage, const std::vector<double>& log_probability,
                       const std::vector<double>& old) {
    double sequence_log_ratio = 0;
    for (std::size_t t = 0; t < old.size(); ++t) {
        sequence_log_ratio += log_probability[t] - old[t];
    }
    double sum = 0;
    for (std::size_t t = 0; t < old.size(); ++t) {
        const double ratio =
            std::exp(rule.ratio == RatioKind::token ? log_probability[t] - old[t] : sequence_log_ratio);
        const double clipped = std::clamp(ratio, 1 - rule.clip_low, 1 + rule.clip_high);
        switch (rule.kind) {
            case ObjectiveKind::supervised:
                sum += log_probability[t];
                break;
            case ObjectiveKind::grpo:
                sum += std::min(ratio * advantage, clipped * advantage);
                break;
            case ObjectiveKind::asymre:
                sum += advantage * log_probability[t];
                break;
            case ObjectiveKind::reinforce:
                sum += advantage * ratio;
                break;
        }
    }
    return sum / static_cast<double>(old.size());
}

}  // namespace

TEST_CASE("gradients of the reference agree with central differences") {
    // The plain bodies are slow; at the largest shape they are compared with the CPU's (precision_test.cpp).
    std::vector<Shape> shapes = case_shapes();
    std::erase_if(shapes, [](const Shape& shape) { return shape.width > 64; });
    check_all_claims(*make_reference_backend(1), shapes);
}

TEST_CASE("gradients of the CPU backend's own bodies agree with central differences") {
    check_all_claims(*make_cpu_backend_float64(1), case_shapes());
}

TEST_CASE("the weights of an objective are its gradient by the log-probabilities") {
    const std::vector<double> old{-1.0, -0.5, -2.0, -0.1};
    const std::vector<double> now{-0.7, -0.55, -2.6, -0.2};  // ratios 1.35, 0.95, 0.55, 0.90; of the sequence 0.64
    const auto backend = make_reference_backend(1);
    for (const ObjectiveKind kind :
         {ObjectiveKind::supervised, ObjectiveKind::grpo, ObjectiveKind::asymre, ObjectiveKind::reinforce}) {
        for (const double advantage : {0.8, -1.3}) {
            for (const RatioKind ratio : {RatioKind::token, RatioKind::sequence}) {
                const ObjectiveRule rule{.kind = kind, .ratio = ratio};
                Workbench<Float64> bench(
                    *backend,
                    {.given = {{"advantage", {advantage}}, {"log_probability", now}, {"old_log_probability", old}}});
                backend->run(Objective<Float64>{.extent = {1, 1, 4},
                                                .rule = rule,
                                                .scale = 0.5,
                                                .answer_tokens = bench.shared<std::int32_t>("answer_tokens", {4}),
                                                .advantage = bench.real("advantage", 1),
                                                .log_probability = bench.real("log_probability", 4),
                                                .old_log_probability = bench.real("old_log_probability", 4),
                                                .weight = bench.real_output("weight", 4)});
                const std::vector<double> weight = bench.outcome().at("weight");
                for (std::size_t t = 0; t < 4; ++t) {
                    CAPTURE(static_cast<int>(kind));
                    CAPTURE(static_cast<int>(ratio));
                    CAPTURE(advantage);
                    CAPTURE(t);
                    constexpr double step = 1e-5;
                    std::vector<double> above = now;
                    std::vector<double> below = now;
                    above[t] += step;
                    below[t] -= step;
                    double slope =
                        (objective_value(rule, advantage, above, old) - objective_value(rule, advantage, below, old)) /
                        (2 * step);
                    if (ratio == RatioKind::sequence &&
                        (kind == ObjectiveKind::grpo || kind == ObjectiveKind::reinforce)) {
                        // In the value above the product of ratios stands in the terms of all tokens, so log p of one
                        // moves as many terms as there are tokens. By definition (RatioKind) its gradient is that of
                        // its own term alone.
                        slope /= static_cast<double>(old.size());
                    }
                    CHECK(weight[t] == doctest::Approx(0.5 * slope).epsilon(1e-6));
                }
            }
        }
    }
}
