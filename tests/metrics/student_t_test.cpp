#include "sim/metrics/student_t.h"

#include <doctest/doctest.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <stdexcept>

#include "sim/metrics/estimate.h"

using namespace millrace;

TEST_CASE("tails of Student's t agree with Boost.Math") {
    for (const std::int64_t degrees : {1, 2, 3, 4, 9, 19, 39, 99, 399, 10'000}) {
        const boost::math::students_t_distribution<double> law(static_cast<double>(degrees));
        for (const double t : {-30.0, -1.5, 0.0, 1e-9, 0.1, 0.7, 1.0, 2.0, 4.5, 12.0, 80.0, 1e4}) {
            const double expected = boost::math::cdf(boost::math::complement(law, t));
            if (expected < 1e-250) {
                continue;
            }
            INFO(degrees, " degrees, t = ", t);
            CHECK(std::abs(student_t_tail(t, degrees) / expected - 1.0) < 2e-11);
        }
    }
}

TEST_CASE("quantiles of Student's t invert its tails") {
    for (const std::int64_t degrees : {1, 4, 9, 19, 99, 1000}) {
        const boost::math::students_t_distribution<double> law(static_cast<double>(degrees));
        for (const double tail : {0.4, 0.05, 0.025, 1e-3, 1e-5, 1e-8}) {
            const double expected = boost::math::quantile(boost::math::complement(law, tail));
            INFO(degrees, " degrees, tail ", tail);
            CHECK(std::abs(student_t_quantile(tail, degrees) / expected - 1.0) < 1e-10);
        }
        CHECK(std::abs(student_t_quantile(0.025, degrees) - student_t_975(degrees)) < 1e-6);
    }
    CHECK(student_t_quantile(0.975, 7) == doctest::Approx(-student_t_quantile(0.025, 7)));
    CHECK_THROWS_AS(student_t_quantile(0.0, 7), std::invalid_argument);
    CHECK_THROWS_AS(student_t_quantile(0.05, 0), std::invalid_argument);
}
