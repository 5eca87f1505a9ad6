#include "sim/theory/noise_law.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

using namespace millrace;

TEST_CASE("a flat law has the same noise at every staleness") {
    const NoiseLaw law = FloorGrowthNoise{.floor = 2.5};
    for (const double staleness : {0.0, 1.0, 17.5, 1e12}) {
        CHECK(sigma2(law, staleness) == 2.5);
        CHECK(sigma2_of_sample(law, staleness) == 2.5);
    }
    CHECK(mean_sigma2(law, 1) == 2.5);
    CHECK(mean_sigma2(law, 1000) == 2.5);
}

TEST_CASE("floor and growth: the mean over a horizon is the arithmetic series") {
    const NoiseLaw linear = FloorGrowthNoise{.floor = 1.0, .growth = 0.25};
    CHECK(sigma2(linear, 8.0) == 3.0);
    CHECK(sigma2_of_sample(linear, 8.0) == 3.0);
    for (const int horizon : {1, 2, 3, 10, 101}) {
        CHECK(mean_sigma2(linear, horizon) == doctest::Approx(1.0 + 0.25 * (horizon - 1) / 2.0));
    }
    const NoiseLaw square = FloorGrowthNoise{.floor = 1.0, .growth = 3.0, .exponent = 2.0};
    CHECK(sigma2(square, 5.0) == 76.0);
    const NoiseLaw root = FloorGrowthNoise{.floor = 1.0, .growth = 3.0, .exponent = 0.5};
    CHECK(sigma2(root, 49.0) == 22.0);
    const NoiseLaw other = FloorGrowthNoise{.floor = 0.5, .growth = 2.0, .exponent = 1.3};
    CHECK(sigma2(other, 6.0) == doctest::Approx(0.5 + 2.0 * std::pow(6.0, 1.3)).epsilon(1e-14));
}

TEST_CASE("the power law vanishes at 0, so a sample counts one step more than its staleness") {
    const NoiseLaw law = PowerLawNoise{.alpha = 0.2, .tau = 2.0};
    CHECK(sigma2(law, 0.0) == 0.0);
    CHECK(sigma2(law, 2.0) == doctest::Approx(1.0).epsilon(1e-15));
    CHECK(sigma2(law, 64.0) == doctest::Approx(4.0).epsilon(1e-15));  // (64/2)^(2 x 0.2) = 2^2
    CHECK(sigma2_of_sample(law, 0.0) == sigma2(law, 1.0));
    CHECK(sigma2_of_sample(law, 6.0) == sigma2(law, 7.0));
    CHECK(mean_sigma2(law, 1) == sigma2(law, 1.0));
    CHECK(mean_sigma2(law, 3) == doctest::Approx((sigma2(law, 1.0) + sigma2(law, 2.0) + sigma2(law, 3.0)) / 3.0));
    const NoiseLaw quarter = PowerLawNoise{.alpha = 0.25};
    CHECK(sigma2(quarter, 9.0) == 3.0);
}

TEST_CASE("a table is linear between its points and constant beyond them") {
    const NoiseLaw law = TabulatedNoise{{{0.0, 1.0}, {4.0, 3.0}, {8.0, 4.0}}};
    CHECK(sigma2(law, 0.0) == 1.0);
    CHECK(sigma2(law, 1.0) == 1.5);
    CHECK(sigma2(law, 4.0) == 3.0);
    CHECK(sigma2(law, 6.0) == 3.5);
    CHECK(sigma2(law, 8.0) == 4.0);
    CHECK(sigma2(law, 800.0) == 4.0);
    CHECK(sigma2_of_sample(law, 6.0) == 3.5);
    CHECK(mean_sigma2(law, 4) == doctest::Approx((1.0 + 1.5 + 2.0 + 2.5) / 4.0));
    CHECK(sigma2(TabulatedNoise{{{0.0, 7.0}}}, 5.0) == 7.0);
}

TEST_CASE("noise has no meaning for a negative staleness or an empty horizon") {
    const NoiseLaw law = FloorGrowthNoise{};
    CHECK_THROWS_AS(sigma2(law, -1.0), std::domain_error);
    CHECK_THROWS_AS(sigma2_of_sample(law, -0.5), std::domain_error);
    CHECK_THROWS_AS(sigma2(PowerLawNoise{}, std::nan("")), std::domain_error);
    CHECK_THROWS_AS(mean_sigma2(law, 0), std::domain_error);
}

TEST_CASE("check names what is wrong with a law") {
    const double nan = std::nan("");
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK_NOTHROW(check(FloorGrowthNoise{}));
    CHECK_NOTHROW(check(FloorGrowthNoise{.floor = 0.1, .growth = 0.0, .exponent = 3.0}));
    CHECK_NOTHROW(check(PowerLawNoise{}));
    CHECK_NOTHROW(check(TabulatedNoise{{{0.0, 1.0}, {1.0, 1.0}}}));
    for (const NoiseLaw& law : {
             NoiseLaw{FloorGrowthNoise{.floor = 0.0}},
             NoiseLaw{FloorGrowthNoise{.floor = infinity}},
             NoiseLaw{FloorGrowthNoise{.growth = -0.1}},
             NoiseLaw{FloorGrowthNoise{.growth = nan}},
             NoiseLaw{FloorGrowthNoise{.exponent = 0.0}},
             NoiseLaw{FloorGrowthNoise{.floor = 1e-13}},
             NoiseLaw{FloorGrowthNoise{.floor = 1e13}},
             NoiseLaw{FloorGrowthNoise{.growth = 1e13}},
             NoiseLaw{FloorGrowthNoise{.exponent = 4.5}},
             NoiseLaw{PowerLawNoise{.tau = 1e-13}},
             NoiseLaw{PowerLawNoise{.tau = 1e13}},
             NoiseLaw{TabulatedNoise{{{0.0, 1e-13}}}},
             NoiseLaw{TabulatedNoise{{{0.0, 1.0}, {1.0, 1e13}}}},
             NoiseLaw{TabulatedNoise{{{0.0, 1.0}, {1e13, 2.0}}}},
             NoiseLaw{PowerLawNoise{.alpha = 0.0}},
             NoiseLaw{PowerLawNoise{.alpha = 0.5}},
             NoiseLaw{PowerLawNoise{.alpha = nan}},
             NoiseLaw{PowerLawNoise{.tau = 0.0}},
             NoiseLaw{TabulatedNoise{}},
             NoiseLaw{TabulatedNoise{{{1.0, 1.0}}}},
             NoiseLaw{TabulatedNoise{{{0.0, 0.0}}}},
             NoiseLaw{TabulatedNoise{{{0.0, 1.0}, {0.0, 2.0}}}},
             NoiseLaw{TabulatedNoise{{{0.0, 2.0}, {1.0, 1.0}}}},
             NoiseLaw{TabulatedNoise{{{0.0, 1.0}, {infinity, 1.0}}}},
             NoiseLaw{TabulatedNoise{{{0.0, 1.0}, {1.0, nan}}}},
         }) {
        CHECK_THROWS_AS(check(law), std::invalid_argument);
    }
    CHECK_THROWS_WITH(check(PowerLawNoise{.alpha = 0.5}),
                      "The exponent alpha of the power-law noise must lie strictly between 0 and 1/2, but is 0.5.");
    CHECK_NOTHROW(check(NoiseConfig{.rho = 1.0}));
    CHECK_THROWS_AS(check(NoiseConfig{.rho = 1.1}), std::invalid_argument);
    CHECK_THROWS_AS(check(NoiseConfig{.rho = nan}), std::invalid_argument);
}

TEST_CASE("within its bounds a law is finite at any staleness that a run can reach, also relative to a fresh sample") {
    for (const NoiseLaw& law : {
             NoiseLaw{FloorGrowthNoise{smallest_noise_number, largest_noise_number, largest_noise_exponent}},
             NoiseLaw{FloorGrowthNoise{largest_noise_number, largest_noise_number, 1e-300}},
             NoiseLaw{PowerLawNoise{0.4999, smallest_noise_number}},
             NoiseLaw{PowerLawNoise{0.4999, largest_noise_number}},
             NoiseLaw{TabulatedNoise{{{0.0, smallest_noise_number}, {largest_noise_number, largest_noise_number}}}},
         }) {
        CHECK_NOTHROW(check(law));
        const double fresh = sigma2_of_sample(law, 0.0);
        const double oldest = sigma2_of_sample(law, 1e9);
        CHECK(fresh > 0.0);
        CHECK(std::isfinite(oldest));
        CHECK(std::isfinite(1e9 * 1e9 * (oldest / fresh)));  // summed over batches and updates
    }
}
