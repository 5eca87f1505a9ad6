#include "sim/theory/optimal_design.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "sim/theory/compute_ratio.h"

using namespace millrace;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double power_law_cost(const PowerLawNoise& law, double x, double y, double mu, double rho) {
    return design_cost(continuous_mean_sigma2(law, x), x, y, mu, rho);
}

/// Brute force: the smallest J on successively finer logarithmic grids in x and y.
OptimalDesign brute_force(const PowerLawNoise& law, double mu, double rho) {
    double log_x = 0.0;
    double log_y = 0.0;
    double best = infinity;
    for (double width = 16.0; width > 1e-6; width *= 0.25) {
        const double centre_x = log_x;
        const double centre_y = log_y;
        for (int i = -24; i <= 24; ++i) {
            for (int j = -24; j <= 24; ++j) {
                const double x = centre_x + width * i / 24;
                const double y = centre_y + width * j / 24;
                const double cost = power_law_cost(law, std::exp(x), std::exp(y), mu, rho);
                if (cost < best) {
                    best = cost;
                    log_x = x;
                    log_y = y;
                }
            }
        }
    }
    return {.horizon = std::exp(log_x), .replay_ratio = std::exp(log_y), .cost = best};
}

struct Parameters {
    double mu, rho, alpha;
};

std::vector<Parameters> random_parameters(int count) {
    std::mt19937_64 random(7);
    const auto uniform = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    std::vector<Parameters> all;
    for (int i = 0; i < count; ++i) {
        const double mu = std::exp(std::log(0.2) + uniform() * std::log(100.0));  // 0.2 .. 20
        const double rho = i % 4 == 0 ? 0.0 : uniform();
        all.push_back({mu, rho, 0.03 + 0.44 * uniform()});
    }
    return all;
}

}  // namespace

TEST_CASE("power-law optimum: check values at rho = 0.1") {
    struct Row {
        double mu, alpha, x, y;
    };
    constexpr std::array<Row, 8> rows = {{{1.0, 0.1, 6.667, 2.000},
                                          {1.0, 0.2, 1.562, 1.162},
                                          {1.0, 0.3, 0.381, 0.606},
                                          {5.28, 0.1, 14.319, 5.576},
                                          {5.28, 0.2, 4.265, 3.973},
                                          {5.28, 0.3, 1.328, 2.488},
                                          {6.84, 0.1, 15.705, 6.465},
                                          {6.84, 0.2, 4.804, 4.711}}};
    for (const Row& row : rows) {
        const OptimalDesign optimum = power_law_optimum({.alpha = row.alpha}, row.mu, 0.1);
        CHECK(std::abs(optimum.horizon - row.x) <= 0.00051);
        CHECK(std::abs(optimum.replay_ratio - row.y) <= 0.00051);
        CHECK(optimum.replay_ratio == doctest::Approx(optimal_replay_ratio(optimum.horizon, row.mu, 0.1)));
    }
}

TEST_CASE("power-law optimum: the closed form is the brute-force minimum of J, also at rho = 0 and rho = 1/mu") {
    std::vector<Parameters> cases = random_parameters(40);
    cases.push_back({5.0, 0.2, 0.2});  // rho = 1/mu: 0/0 in the paper's x*
    cases.push_back({1.0, 1.0, 0.3});
    for (const auto& [mu, rho, alpha] : cases) {
        CAPTURE(mu);
        CAPTURE(rho);
        CAPTURE(alpha);
        const PowerLawNoise law{.alpha = alpha, .tau = 3.0};
        const OptimalDesign closed = power_law_optimum(law, mu, rho);
        const OptimalDesign brute = brute_force(law, mu, rho);
        CHECK(closed.cost <= brute.cost * (1.0 + 1e-12));
        CHECK(closed.cost == doctest::Approx(brute.cost).epsilon(1e-9));
        CHECK(closed.horizon == doctest::Approx(brute.horizon).epsilon(1e-3));
        CHECK(closed.replay_ratio == doctest::Approx(brute.replay_ratio).epsilon(1e-3));
    }
}

TEST_CASE("power-law optimum: rho -> 0 and rho -> 1/mu lose no digits") {
    const double mu = 5.28;
    for (const double alpha : {0.1, 0.2, 0.3, 0.45}) {
        const double limit = mu * (1.0 - 2.0 * alpha) / (2.0 * alpha);
        CHECK(power_law_optimum({.alpha = alpha}, mu, 0.0).replay_ratio == doctest::Approx(limit).epsilon(1e-15));
        double previous = 0.0;
        for (double rho = 1e-2; rho > 1e-18; rho *= 0.1) {
            const double y = power_law_optimum({.alpha = alpha}, mu, rho).replay_ratio;
            // y solves rho y^2 + 2 alpha y = mu (1 - 2 alpha); it rises to its limit as rho falls.
            CHECK(rho * y * y + 2.0 * alpha * y == doctest::Approx(mu * (1.0 - 2.0 * alpha)).epsilon(1e-14));
            CHECK(y >= previous);
            CHECK(y <= limit * (1.0 + 1e-15));
            previous = y;
        }
        CHECK(previous == doctest::Approx(limit).epsilon(1e-14));

        const double at = power_law_optimum({.alpha = alpha}, mu, 1.0 / mu).horizon;
        CHECK(power_law_optimum({.alpha = alpha}, mu, (1.0 + 1e-9) / mu).horizon == doctest::Approx(at).epsilon(1e-8));
        CHECK(power_law_optimum({.alpha = alpha}, mu, (1.0 - 1e-9) / mu).horizon == doctest::Approx(at).epsilon(1e-8));
    }
}

TEST_CASE("the general minimiser finds the closed form when given a power law") {
    for (const auto& [mu, rho, alpha] : random_parameters(60)) {
        const PowerLawNoise law{.alpha = alpha, .tau = 0.5};
        const OptimalDesign closed = power_law_optimum(law, mu, rho);
        const OptimalDesign general =
            continuous_optimum([&law](double x) { return continuous_mean_sigma2(law, x); }, mu, rho);
        CHECK(general.horizon == doctest::Approx(closed.horizon).epsilon(1e-6));
        CHECK(general.replay_ratio == doctest::Approx(closed.replay_ratio).epsilon(1e-6));
        CHECK(general.cost == doctest::Approx(closed.cost).epsilon(1e-12));
    }
}

TEST_CASE("flat noise wants an infinite horizon") {
    const NoiseLaw flat = FloorGrowthNoise{.floor = 2.0};
    for (const double rho : {0.0, 0.1, 1.0}) {
        const double mu = 5.28;
        const double root = 1.0 / std::sqrt(mu) + std::sqrt(rho);
        for (const OptimalDesign& optimum :
             {whole_step_optimum(flat, mu, rho),
              continuous_optimum([&flat](double x) { return continuous_mean_sigma2(flat, x); }, mu, rho)}) {
            CHECK_FALSE(optimum.horizon_is_finite());
            CHECK(optimum.cost == doctest::Approx(2.0 * root * root));
            CHECK(1.0 / optimum.replay_ratio == doctest::Approx(std::sqrt(rho / mu)));
            CHECK(design_cost(2.0, optimum.horizon, optimum.replay_ratio, mu, rho) == doctest::Approx(optimum.cost));
        }
    }
}

TEST_CASE("whole-step optimum: no other horizon is better") {
    const std::array<NoiseLaw, 4> laws = {FloorGrowthNoise{.floor = 1.0, .growth = 0.05},
                                          FloorGrowthNoise{.floor = 1.0, .growth = 0.3, .exponent = 0.5},
                                          TabulatedNoise{{{0.0, 1.0}, {5.0, 1.2}, {20.0, 6.0}}}, PowerLawNoise{}};
    for (const NoiseLaw& law : laws) {
        for (const double rho : {0.0, 0.1, 0.7}) {
            const double mu = 5.28;
            const OptimalDesign optimum = whole_step_optimum(law, mu, rho);
            REQUIRE(optimum.horizon_is_finite());
            double least = infinity;
            for (int steps = 1; steps <= 3000; ++steps) {
                const double y = optimal_replay_ratio(steps, mu, rho);
                least = std::min(least, design_cost(mean_sigma2(law, steps), steps, y, mu, rho));
            }
            CHECK(optimum.cost == doctest::Approx(least).epsilon(1e-12));
            CHECK(design_cost(mean_sigma2(law, static_cast<int>(optimum.horizon)), optimum.horizon,
                              optimum.replay_ratio, mu, rho) == doctest::Approx(least).epsilon(1e-12));
        }
    }
    // A table that rises a little and stays there is as good as flat; beyond a million steps the horizon is continuous.
    CHECK_FALSE(whole_step_optimum(TabulatedNoise{{{0.0, 1.0}, {3.0, 1.01}}}, 5.28, 0.0).horizon_is_finite());
    const FloorGrowthNoise slow{.floor = 1.0, .growth = 1e-9};
    const OptimalDesign far = whole_step_optimum(slow, 5.28, 0.0);
    CHECK(far.horizon ==
          doctest::Approx(
              continuous_optimum([&slow](double x) { return continuous_mean_sigma2(slow, x); }, 5.28, 0.0).horizon)
              .epsilon(1e-6));
}

TEST_CASE("the continuous mean of a law is its integral") {
    CHECK(continuous_mean_sigma2(FloorGrowthNoise{.floor = 1.0, .growth = 2.0}, 3.0) == doctest::Approx(4.0));
    CHECK(continuous_mean_sigma2(PowerLawNoise{.alpha = 0.25, .tau = 1.0}, 9.0) == doctest::Approx(2.0));
    const NoiseLaw table = TabulatedNoise{{{0.0, 1.0}, {4.0, 3.0}}};
    CHECK(continuous_mean_sigma2(table, 2.0) == doctest::Approx(1.5));
    CHECK(continuous_mean_sigma2(table, 4.0) == doctest::Approx(2.0));
    CHECK(continuous_mean_sigma2(table, 8.0) == doctest::Approx((8.0 + 12.0) / 8.0));
}

TEST_CASE("variance bound and on-policy baseline") {
    const NoiseConfig flat{.sigma2 = FloorGrowthNoise{.floor = 2.0}, .rho = 0.5};
    CHECK(variance_bound(flat, {.batch = 8, .buffer = 64, .fresh_per_step = 4}) ==
          doctest::Approx(2.0 * (1.0 / 8 + 1.0 / 64 + 0.5 / 4)));
    CHECK(on_policy_variance_bound(flat, 8) == doctest::Approx(2.0 * 1.5 / 8));
    const NoiseConfig growing{.sigma2 = FloorGrowthNoise{.floor = 1.0, .growth = 1.0}, .rho = 0.0};
    CHECK(variance_bound(growing, {.batch = 1, .buffer = 10, .fresh_per_step = 4}) ==
          doctest::Approx(2.0 * 1.1));  // horizon 2.5, rounded up: (1 + 2 + 3)/3
    const NoiseConfig power{.sigma2 = PowerLawNoise{.alpha = 0.2, .tau = 1.0}, .rho = 0.0};
    CHECK(on_policy_variance_bound(power, 1) == 1.0);  // one step old
    CHECK(on_policy_cost(flat.sigma2, 4.0, 0.5) == doctest::Approx(2.0 * 1.25 * 1.5));
}

TEST_CASE("convergence bound: the published form and its step sizes") {
    const BufferShape shape{.batch = 60, .buffer = 240, .fresh_per_step = 20};
    const Problem problem{.initial_loss = 3.0, .smoothness = 2.0, .bias_slope = 0.01};
    CHECK(largest_step_size(problem, shape) == doctest::Approx(0.25));  // 1/(2 L), not the printed L/2 = 1
    CHECK(largest_step_size({.smoothness = 2.0, .bias_slope = 10.0}, shape) ==
          doctest::Approx(20.0 / (2.0 * std::sqrt(2.0) * 10.0 * 240.0)));
    const double eta = 0.1;
    const double variance = 0.03;
    CHECK(convergence_bound(problem, shape, variance, eta, 1000) ==
          doctest::Approx(12.0 * 3.0 / (0.1 * 1000) +
                          8.0 * 0.1 * (4.0 * 240.0 * 240.0 * 1e-4 * 0.1 / 400.0 + 2.0) * 0.03));
    CHECK_THROWS_AS(convergence_bound(problem, shape, variance, 0.26, 1000), std::domain_error);
    CHECK_THROWS_AS(convergence_bound(problem, shape, variance, 0.0, 1000), std::domain_error);
}

TEST_CASE("the theorem's V is above the exact second moment, and the pairwise bound lies between them") {
    std::mt19937_64 random(11);
    const auto up_to = [&random](std::uint64_t n) { return 1.0 + static_cast<double>(random() % n); };
    for (int i = 0; i < 2000; ++i) {
        const double fresh = up_to(30);
        const double buffer = fresh * up_to(40);
        const double rho = static_cast<double>(random() % 101) / 100.0;
        const BufferShape shape{.batch = up_to(100), .buffer = buffer, .fresh_per_step = fresh};
        for (const Draws draws : {Draws::with_replacement, Draws::without_replacement}) {
            if (draws == Draws::without_replacement && shape.batch > buffer) {
                continue;
            }
            const double exact = second_moment(shape, rho, draws);
            const double bound = second_moment_bound(shape, rho, draws);
            CHECK(exact <= bound * (1.0 + 1e-12));
            CHECK(bound <= variance_bound({.rho = rho}, shape));
        }
    }
}

TEST_CASE("Monte Carlo of the synchronous sampling agrees with the exact second moment") {
    constexpr int fresh = 6;
    constexpr int horizon = 5;
    constexpr int buffer = fresh * horizon;
    constexpr int batch = 12;
    constexpr double rho = 0.8;
    constexpr int rounds = 40'000;
    std::mt19937_64 random(3);
    for (const Draws draws : {Draws::with_replacement, Draws::without_replacement}) {
        double sum = 0.0;
        double sum_of_squares = 0.0;
        std::array<int, buffer> order{};
        for (int i = 0; i < buffer; ++i) {
            order[static_cast<std::size_t>(i)] = i;
        }
        std::array<int, batch> drawn{};
        for (int round = 0; round < rounds; ++round) {
            for (std::size_t i = 0; i < batch; ++i) {
                if (draws == Draws::with_replacement) {
                    drawn[i] = static_cast<int>(random() % buffer);
                } else {
                    std::swap(order[i], order[i + random() % (buffer - i)]);
                    drawn[i] = order[i];
                }
            }
            // Noise given the draws: |sum of eps|^2 / B^2 with unit variances and the coupling at its bound.
            double square = 0.0;
            for (const int a : drawn) {
                for (const int b : drawn) {
                    square += a == b ? 1.0 : rho * std::abs(a / fresh - b / fresh) / buffer;
                }
            }
            square /= batch * batch;
            sum += square;
            sum_of_squares += square * square;
        }
        const double mean = sum / rounds;
        const double standard_error = std::sqrt((sum_of_squares / rounds - mean * mean) / rounds);
        const double exact = second_moment({.batch = batch, .buffer = buffer, .fresh_per_step = fresh}, rho, draws);
        CHECK(std::abs(mean - exact) < 4.0 * standard_error);
        CHECK(standard_error < 0.003 * exact);
    }
}

TEST_CASE("flat noise, (W,T) = (5,3), N = 84, B = 60, mu = 5.28: compute to target against on-policy") {
    const double gamma = compute_ratio(5, 3, 5.28);
    const BufferShape shape{.batch = 60, .buffer = 84, .fresh_per_step = 12};
    const double on_policy = on_policy_variance_bound({}, 60);
    // Compute per update times the variance that sets the number of updates.
    CHECK(gamma * second_moment(shape, 0.0, Draws::with_replacement) / on_policy ==
          doctest::Approx(0.723).epsilon(0.001));
    CHECK(gamma * second_moment(shape, 0.0, Draws::without_replacement) / on_policy ==
          doctest::Approx(0.425).epsilon(0.001));
}

TEST_CASE("arguments without a meaning are refused") {
    CHECK_THROWS_AS(design_cost(1, 1, 1, 0, 0.1), std::domain_error);
    CHECK_THROWS_AS(design_cost(1, 1, 1, 1, 1.1), std::domain_error);
    CHECK_THROWS_AS(design_cost(1, 0, 1, 1, 0.1), std::domain_error);
    CHECK_THROWS_AS(optimal_replay_ratio(std::nan(""), 1, 0.1), std::domain_error);
    CHECK_THROWS_AS(power_law_optimum({.alpha = 0.5}, 1, 0.1), std::invalid_argument);
    CHECK_THROWS_AS(power_law_optimum({}, -1, 0.1), std::domain_error);
    CHECK_THROWS_AS(whole_step_optimum(TabulatedNoise{{{0.0, 1.0}, {1e9, 2.0}}}, 1, 0.1), std::domain_error);
    CHECK_THROWS_AS(second_moment({.batch = 9, .buffer = 8, .fresh_per_step = 4}, 0, Draws::without_replacement),
                    std::domain_error);
    CHECK_THROWS_AS(second_moment({.batch = 4, .buffer = 10, .fresh_per_step = 4}, 0, Draws::with_replacement),
                    std::domain_error);
    CHECK_THROWS_AS(variance_bound({}, {.batch = 1, .buffer = 1, .fresh_per_step = 2}), std::domain_error);
    CHECK_THROWS_WITH(design_cost(1, 1, 1, 1, 1.1), "The coupling rho must be between 0 and 1, but is 1.1.");
}

TEST_CASE("designs are the same bits in every build on every x86-64 machine") {
    const NoiseLaw growing = FloorGrowthNoise{.floor = 1.0, .growth = 0.05, .exponent = 1.3};
    const auto continuous = [&](double horizon) { return continuous_mean_sigma2(growing, horizon); };
    const NoiseLaw slow = FloorGrowthNoise{.floor = 1.0, .growth = 1e-12, .exponent = 0.7};
    const std::pair<OptimalDesign, OptimalDesign> found_and_expected[] = {
        {power_law_optimum({.alpha = 0.2, .tau = 3.0}, 5.28, 0.1),
         {0x1.10f9636074fbdp+2, 0x1.fc943c7657973p+1, 0x1.b071b047de7ecp-1}},
        {whole_step_optimum(growing, 5.28, 0.1), {0x1p+3, 0x1.36080995d4206p+2, 0x1.0ed6222d715d9p+0}},
        {continuous_optimum(continuous, 5.28, 0.1), {0x1.e1deb68194285p+2, 0x1.30c86c8411ffp+2, 0x1.184325337eacfp+0}},
        {whole_step_optimum(slow, 5.28, 1e-4), {0x1.bcbd95cp+28, 0x1.cb8f61b26d0e1p+7, 0x1.95e8dc81a859ap-3}},
    };
    for (const auto& [found, expected] : found_and_expected) {
        CHECK(found.horizon == expected.horizon);
        CHECK(found.replay_ratio == expected.replay_ratio);
        CHECK(found.cost == expected.cost);
    }
}
