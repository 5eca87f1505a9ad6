#include "model/evaluation/pass_at_k.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <stdexcept>

using namespace millrace;

namespace {

double binomial(int n, int k) {
    double value = 1;
    for (int i = 1; i <= k; ++i) {
        value = value * (n - k + i) / i;
    }
    return value;
}

}  // namespace

TEST_CASE("pass@k is the share of k-subsets that hold a correct sample") {
    for (int n = 1; n <= 10; ++n) {
        for (int c = 0; c <= n; ++c) {
            const unsigned correct = (1u << c) - 1;  // samples 0 .. c - 1
            for (int k = 1; k <= n; ++k) {
                int subsets = 0;
                int with_correct = 0;
                for (unsigned subset = 0; subset < 1u << n; ++subset) {
                    if (std::popcount(subset) == k) {
                        ++subsets;
                        with_correct += (subset & correct) != 0 ? 1 : 0;
                    }
                }
                CHECK(pass_at_k(n, c, k) ==
                      doctest::Approx(static_cast<double>(with_correct) / subsets).epsilon(1e-14));
            }
        }
    }
}

TEST_CASE("the mean of pass@k over the correct samples that chance gives is 1 - (1 - p)^k") {
    for (const double p : {0.001, 0.2, 0.5, 0.97}) {
        for (const int n : {1, 4, 16, 40}) {
            for (int k = 1; k <= n; ++k) {
                double mean = 0;
                for (int c = 0; c <= n; ++c) {
                    mean += binomial(n, c) * std::pow(p, c) * std::pow(1 - p, n - c) * pass_at_k(n, c, k);
                }
                CHECK(mean == doctest::Approx(1 - std::pow(1 - p, k)).epsilon(1e-12));
            }
        }
    }
}

TEST_CASE("pass@1 is the share of correct samples, to the last bit") {
    for (int n = 1; n <= 100; ++n) {
        for (int c = 0; c <= n; ++c) {
            CHECK(pass_at_k(n, c, 1) == static_cast<double>(c) / n);
        }
    }
}

TEST_CASE("pass@k never falls with k or with c, and stays in 0 .. 1") {
    for (const int n : {5, 64, 1000}) {
        for (int c = 0; c <= n; c += n / 5) {
            for (int k = 1; k < n; ++k) {
                CHECK(pass_at_k(n, c, k) >= 0);
                CHECK(pass_at_k(n, c, k) <= pass_at_k(n, c, k + 1) * (1 + 1e-14));
                CHECK(pass_at_k(n, c, k + 1) <= 1);
                if (c > 0) {
                    CHECK(pass_at_k(n, c, k) >= pass_at_k(n, c - 1, k) * (1 - 1e-14));
                }
            }
        }
        CHECK(pass_at_k(n, 0, n) == 0);
        CHECK(pass_at_k(n, 1, n) == 1);
        CHECK(pass_at_k(n, n, 1) == 1);
    }
}

TEST_CASE("large counts neither overflow nor lose digits") {
    // One correct among n is in a subset of k with chance k/n.
    CHECK(pass_at_k(1'000'000'000'000, 1, 7) == doctest::Approx(7e-12).epsilon(1e-15));
    // Two among n: 1 - (n-k)(n-k-1) / (n (n-1)) = k (2n - k - 1) / (n (n - 1)), here without cancellation.
    constexpr double n = 1e9;
    CHECK(pass_at_k(1'000'000'000, 2, 3) == doctest::Approx(3 * (2 * n - 4) / n / (n - 1)).epsilon(1e-14));
    // C(10000, 5000) has 3009 digits. With c of n far apart, subsets are nearly independent draws.
    CHECK(pass_at_k(10'000, 5000, 5000) == doctest::Approx(1));
    CHECK(pass_at_k(100'000'000, 30'000'000, 4) == doctest::Approx(1 - std::pow(0.7, 4)).epsilon(1e-7));
}

TEST_CASE("pass@k of impossible counts is refused") {
    CHECK_THROWS_AS(pass_at_k(8, 3, 9), std::invalid_argument);
    CHECK_THROWS_AS(pass_at_k(8, 3, 0), std::invalid_argument);
    CHECK_THROWS_AS(pass_at_k(8, 9, 1), std::invalid_argument);
    CHECK_THROWS_AS(pass_at_k(8, -1, 1), std::invalid_argument);
    CHECK_THROWS_AS(pass_at_k(0, 0, 1), std::invalid_argument);
    CHECK_THROWS_WITH_AS(pass_at_k(8, 3, 9),
                         "pass@9 cannot be estimated from 8 samples: k must be 1 to the number of samples.",
                         std::invalid_argument);
}
