#include "model/transformer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/model/small_model.h"

using namespace millrace;
using namespace millrace::test;

namespace {

/// The sum over a batch of weight * log p[target], and its gradient by the backward pass.
struct WeightedSum {
    double value = 0.0;
    std::vector<double> gradient;
};

/// Two replicas of three sequences in one pass.
template <typename P>
class Pass {
   public:
    using Real = typename P::Real;

    explicit Pass(Backend<P>& backend)
        : backend_(backend),
          transformer_(backend, small_shape),
          workspace_(Workspace<P>::for_training(backend, small_shape, extent)),
          tokens_(backend, sequences * row),
          gradient_(backend, 2 * places_of(small_shape).size) {
        std::vector<Token> tokens;
        for (const TaskRollout& rollout : random_rollouts(static_cast<int>(sequences), 1, 5)) {
            tokens.insert(tokens.end(), rollout.tokens.begin(), rollout.tokens.end());
        }
        tokens_.upload(tokens);
    }

    WeightedSum run(const std::vector<double>& both_replicas) {
        Weights<P> weights(backend_, small_shape, 2);
        weights.upload(std::vector<Real>(both_replicas.begin(), both_replicas.end()));
        const PassInput<P> input{.extent = extent,
                                 .tokens = tokens_.data(),
                                 .token_stride = row,
                                 .reals = weights.reals(),
                                 .operands = weights.operands(),
                                 .parameter_stride = weights.parameters()};
        Activations<P>& a = workspace_.activations();
        transformer_.forward(input, a);
        std::vector<Real> token_weights;
        for (int i = 0; i < extent.rows(); ++i) {
            token_weights.push_back(static_cast<Real>(2.0 * uniform_number(9, static_cast<std::uint64_t>(i)) - 1.0));
        }
        backend_.upload(a.weight, token_weights.data(), token_weights.size() * sizeof(Real));
        backend_.run(Classifier<P>{.extent = extent,
                                   .vocabulary = small_shape.vocabulary,
                                   .logits = a.logits,
                                   .targets = input.tokens + 1,
                                   .target_stride = row,
                                   .log_probability = a.log_probability,
                                   .weight = a.weight,
                                   .dlogits = a.dlogits});
        transformer_.backward(input, a, gradient_.data(), weights.parameters());
        std::vector<Real> log_probability(token_weights.size());
        backend_.download(log_probability.data(), a.log_probability, log_probability.size() * sizeof(Real));
        WeightedSum result;
        for (std::size_t i = 0; i < log_probability.size(); ++i) {
            result.value += static_cast<double>(token_weights[i]) * static_cast<double>(log_probability[i]);
        }
        const auto gradient = gradient_.download();
        result.gradient.assign(gradient.begin(), gradient.end());
        return result;
    }

    static constexpr std::size_t row = small_sequence;
    static constexpr std::size_t sequences = 6;
    static constexpr Extent extent{2, 3, small_sequence - 1};

   private:
    Backend<P>& backend_;
    Transformer<P> transformer_;
    Workspace<P> workspace_;
    BackendArray<P, Token> tokens_;
    BackendArray<P, Real> gradient_;
};

std::vector<double> two_replicas() {
    std::vector<double> weights = test_weights<double>(small_shape, 1);
    const std::vector<double> second = test_weights<double>(small_shape, 2);
    weights.insert(weights.end(), second.begin(), second.end());
    return weights;
}

double norm(const std::vector<double>& numbers) {
    double sum = 0.0;
    for (const double number : numbers) {
        sum += number * number;
    }
    return std::sqrt(sum);
}

}  // namespace

TEST_CASE("the backward pass is the derivative of the forward pass, for every single parameter") {
    const auto backend = make_reference_backend(1);
    Pass<Float64> pass(*backend);
    const std::vector<double> weights = two_replicas();
    const WeightedSum exact = pass.run(weights);
    const double scale = norm(exact.gradient) / std::sqrt(static_cast<double>(weights.size()));
    double worst = 0.0;
    for (int replica = 0; replica < 2; ++replica) {
        for (const NamedParameter& parameter : named_parameters(small_shape)) {
            for (std::size_t i = 0; i < parameter.size(); ++i) {
                const std::size_t place =
                    static_cast<std::size_t>(replica) * places_of(small_shape).size + parameter.place + i;
                constexpr double step = 1e-5;
                std::vector<double> moved = weights;
                moved[place] = weights[place] + step;
                const double above = pass.run(moved).value;
                moved[place] = weights[place] - step;
                const double below = pass.run(moved).value;
                const double difference = (above - below) / (2 * step);
                const double error = std::abs(exact.gradient[place] - difference);
                worst = std::max(worst, error / std::max(std::abs(difference), scale));
            }
        }
    }
    MESSAGE("largest relative error: " << worst);
    CHECK(worst < 1e-6);
}

TEST_CASE("the gaps between parameters have no gradient, nor have positions beyond the sequences") {
    const auto backend = make_reference_backend(1);
    std::vector<double> gradient = Pass<Float64>(*backend).run(two_replicas()).gradient;
    const ParameterPlaces places = places_of(small_shape);
    const std::size_t last_position =
        places.position_table + static_cast<std::size_t>((small_shape.context - 1) * small_shape.width);
    for (int i = 0; i < small_shape.width; ++i) {
        CHECK(gradient[last_position + static_cast<std::size_t>(i)] == 0.0);
    }
    for (const NamedParameter& parameter : named_parameters(small_shape)) {
        std::fill_n(gradient.begin() + static_cast<std::ptrdiff_t>(parameter.place), parameter.size(), 0.0);
    }
    CHECK(norm(std::vector<double>(gradient.begin(), gradient.begin() + static_cast<std::ptrdiff_t>(places.size))) ==
          0.0);
}

TEST_CASE("single precision is double precision but for rounding") {
    const auto reference = make_reference_backend(1);
    const auto backend = make_cpu_backend(1);
    const WeightedSum exact = Pass<Float64>(*reference).run(two_replicas());
    const WeightedSum rounded = Pass<Float32>(*backend).run(two_replicas());
    CHECK(rounded.value == doctest::Approx(exact.value).epsilon(1e-6));
    std::vector<double> difference = exact.gradient;
    for (std::size_t i = 0; i < difference.size(); ++i) {
        difference[i] -= rounded.gradient[i];
    }
    CHECK(norm(difference) < 1e-5 * norm(exact.gradient));
}

TEST_CASE("replicas in one pass are models of their own") {
    const auto backend = make_reference_backend(1);
    Pass<Float64> pass(*backend);
    const std::vector<double> weights = two_replicas();
    const WeightedSum both = pass.run(weights);
    // Another second replica leaves the first one's gradient alone.
    std::vector<double> changed = weights;
    const std::vector<double> other = test_weights<double>(small_shape, 3);
    std::copy(other.begin(), other.end(), changed.begin() + static_cast<std::ptrdiff_t>(other.size()));
    const WeightedSum mixed = pass.run(changed);
    CHECK(std::equal(both.gradient.begin(), both.gradient.begin() + static_cast<std::ptrdiff_t>(other.size()),
                     mixed.gradient.begin()));
    CHECK_FALSE(std::equal(both.gradient.begin() + static_cast<std::ptrdiff_t>(other.size()), both.gradient.end(),
                           mixed.gradient.begin() + static_cast<std::ptrdiff_t>(other.size())));
}
