// The polynomials of math.h and the vectors of the CPU backend against the C library in double precision.
#include "kernels/math.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/vector.h"
#include "kernels/random.h"

using namespace millrace;

namespace {

/// Distance in units in the last place of the exact result.
double error_in_ulp(float got, double exact) {
    const auto rounded = static_cast<float>(exact);
    const double ulp = static_cast<double>(std::nextafter(std::abs(rounded), HUGE_VALF)) - std::abs(rounded);
    return std::abs(static_cast<double>(got) - exact) / ulp;
}

}  // namespace

TEST_CASE("exp is right to two units in the last place") {
    double worst = 0;
    for (float x = -87.3f; x < 88.7f; x += 0.00137f) {
        worst = std::max(worst, error_in_ulp(polynomial_exp(x), std::exp(static_cast<double>(x))));
    }
    CHECK(worst < 2);
    CHECK(polynomial_exp(0) == 1);
    CHECK(polynomial_exp(-1000) == 0);
    CHECK(polynomial_exp(-HUGE_VALF) == 0);
    CHECK(polynomial_exp(1000) == HUGE_VALF);
    CHECK(polynomial_exp(88.722f) < HUGE_VALF);
    CHECK(std::isnan(polynomial_exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("exp in vectors is right to two units in the last place") {
    double worst = 0;
    for (float x = -87.3f; x < 0; x += 0.00137f) {
        const Vector<float, 4> e = exp_of_nonpositive<4>(Vector<float, 4>{x, x / 2, x / 4, x / 8});
        for (int i = 0; i < 4; ++i) {
            worst = std::max(worst, error_in_ulp(e[i], std::exp(static_cast<double>(std::ldexp(x, -i)))));
        }
    }
    CHECK(worst < 2);
    const Vector<float, 4> e = exp_of_nonpositive<4>(Vector<float, 4>{0, -100, -1e30f, -HUGE_VALF});
    CHECK(e[0] == 1);
    CHECK(e[1] == 0);
    CHECK(e[2] == 0);
    CHECK(e[3] == 0);
}

TEST_CASE("log is right to two units in the last place") {
    double worst = 0;
    for (std::uint32_t i = 0; i < 200000; ++i) {
        // All magnitudes, and densely around 1.
        const float uniform = uniform_from(learner_bits(1, LearnerPurpose::test, i).word[0]);
        for (const float x : {std::ldexp(1 + uniform, static_cast<int>(i % 250) - 125), 0.5f + uniform}) {
            worst = std::max(worst, error_in_ulp(polynomial_log(x), std::log(static_cast<double>(x))));
        }
    }
    CHECK(worst < 2);
    CHECK(polynomial_log(1) == 0);
}

TEST_CASE("lanes are added and compared as one expects") {
    const Vector<float, 4> v{3, 1, 9, 5};
    CHECK(sum_of_lanes<float, 4>(v) == 18);
    CHECK(largest_lane<float, 4>(v) == 9);
    Vector<float, 4> rows[4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {0, 0, 0, 1}, {-1, 1, -1, 1}};
    const Vector<float, 4> sums = sums_of_lanes<float, 4>(rows);
    CHECK(sums[0] == 10);
    CHECK(sums[1] == 26);
    CHECK(sums[2] == 1);
    CHECK(sums[3] == 0);
}
