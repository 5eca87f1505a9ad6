#include "sim/engine/portable_math.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/engine/random.h"

using namespace millrace;

namespace {

// Distance from the true value in units in the last place of a double, the true value given to more digits.
double ulps(double value, long double truth) {
    if (std::isinf(value) || truth == 0) {
        return value == static_cast<double>(truth) ? 0.0 : 1e300;
    }
    const double magnitude = std::max(std::abs(static_cast<double>(truth)), 0x1p-1022);
    const double ulp = std::nextafter(magnitude, HUGE_VAL) - magnitude;
    return static_cast<double>(std::abs(value - truth) / ulp);
}

/// Largest error over random arguments; those of the logarithmic kind are spread evenly over binary exponents.
template <class Function, class Truth>
double worst(Function function, Truth truth, double low, double high, bool exponents = false) {
    const RandomStream stream(11, 0, Purpose::test_services);
    double largest = 0;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        double x = low + (high - low) * Draw(stream, i).uniform();
        if (exponents) {
            x = std::exp2(x);
        }
        largest = std::max(largest, ulps(function(x), truth(static_cast<long double>(x))));
    }
    return largest;
}

double relative_error(double value, double truth) {
    return std::abs(value / truth - 1.0);
}

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("log is within one ulp of the truth, near 1 and at the ends of the range too") {
    const auto truth = [](long double x) { return std::log(x); };
    CHECK(worst(portable::log, truth, 0, 1) < 1);
    CHECK(worst(portable::log, truth, 0.9, 1.1) < 1);
    CHECK(worst(portable::log, truth, 1 - 1e-6, 1 + 1e-6) < 1);
    CHECK(worst(portable::log, truth, -1074, 1023, true) < 1);
    CHECK(portable::log(1.0) == 0.0);
    CHECK(portable::log(0.0) == -infinity);
    CHECK(portable::log(infinity) == infinity);
    CHECK(std::isnan(portable::log(-1.0)));
    CHECK(std::isnan(portable::log(std::nan(""))));
}

TEST_CASE("exp is within one ulp of the truth, subnormal results included") {
    const auto truth = [](long double x) { return std::exp(x); };
    CHECK(worst(portable::exp, truth, -2, 2) < 1);
    CHECK(worst(portable::exp, truth, -744, 709.7) < 1);
    CHECK(portable::exp(0.0) == 1.0);
    CHECK(portable::exp(1.0) == 2.718281828459045);
    CHECK(portable::exp(-infinity) == 0.0);
    CHECK(portable::exp(infinity) == infinity);
    CHECK(portable::exp(709.782) < infinity);
    CHECK(portable::exp(709.79) == infinity);
    CHECK(std::isnan(portable::exp(std::nan(""))));
}

TEST_CASE("pow is within one ulp of the truth, and within 1e-14 for huge exponents") {
    for (const double y : {0.5, -1.5, 0.01, 1.0 / 3, 7.3, -37.77, 60.0}) {
        CAPTURE(y);
        CHECK(worst([y](double x) { return portable::pow(x, y); },
                    [y](long double x) { return std::pow(x, static_cast<long double>(y)); }, -10, 10, true) < 1);
    }
    CHECK(worst([](double x) { return portable::pow(x, 1e5); }, [](long double x) { return std::pow(x, 1e5L); }, 0.995,
                1.005) < 40);
    CHECK(portable::pow(2.0, 10.0) == 1024.0);
    CHECK(portable::pow(0.0, 0.0) == 1.0);
    CHECK(portable::pow(0.0, 2.0) == 0.0);
    CHECK(portable::pow(0.0, -2.0) == infinity);
    CHECK(portable::pow(infinity, 0.5) == infinity);
    CHECK(portable::pow(infinity, -0.5) == 0.0);
    CHECK(portable::pow(10.0, 400.0) == infinity);
    CHECK(portable::pow(10.0, -400.0) == 0.0);
    CHECK(portable::pow(0.5, infinity) == 0.0);
    CHECK(std::isnan(portable::pow(-1.0, 2.0)));
}

TEST_CASE("log1p and expm1 keep their precision for small arguments") {
    const auto log1p = [](long double x) { return std::log1p(x); };
    const auto expm1 = [](long double x) { return std::expm1(x); };
    CHECK(worst(portable::log1p, log1p, -0.999, 2) < 2);
    CHECK(worst(portable::log1p, log1p, -60, 20, true) < 2);
    CHECK(worst(portable::expm1, expm1, -3, 3) < 2);
    CHECK(worst(portable::expm1, expm1, -60, 3, true) < 2);
    CHECK(portable::log1p(-1.0) == -infinity);
    CHECK(portable::log1p(infinity) == infinity);
    CHECK(portable::expm1(-infinity) == -1.0);
}

TEST_CASE("erfc and the normal cdf have small relative error in the tail") {
    CHECK(worst(
              portable::erfc, [](long double x) { return std::erfc(x); }, -6, 26) < 8);
    CHECK(worst(
              portable::normal_cdf, [](long double z) { return std::erfc(-z / std::sqrt(2.0L)) / 2; }, -37, 8) < 8);
    CHECK(portable::normal_cdf(0.0) == 0.5);
    CHECK(portable::normal_cdf(1.0) == doctest::Approx(0.8413447460685429).epsilon(1e-15));
    CHECK(portable::normal_cdf(-infinity) == 0.0);
    CHECK(portable::normal_cdf(infinity) == 1.0);
}

TEST_CASE("the normal quantile inverts the cdf") {
    CHECK(portable::normal_quantile(0.5) == 0.0);
    CHECK(relative_error(portable::normal_quantile(0.975), 1.9599639845400542) < 1e-15);
    CHECK(relative_error(portable::normal_quantile(0.99), 2.3263478740408411) < 1e-15);
    CHECK(relative_error(portable::normal_quantile(1e-10), -6.3613409024040562) < 1e-15);
    CHECK(portable::normal_quantile(0.0) == -infinity);
    CHECK(portable::normal_quantile(1.0) == infinity);
    const RandomStream stream(12, 0, Purpose::test_services);
    for (std::uint64_t i = 0; i < 5'000; ++i) {
        // z = quantile(p) is good to 1e-15 |z|; the cdf multiplies that by density / p, about |z| in the tail.
        const double p = std::exp2(-100 * Draw(stream, i).uniform());
        const double z = portable::normal_quantile(p);
        CHECK(relative_error(portable::normal_cdf(z), p) < 4e-15 * (1 + z * z));
        CHECK(portable::normal_quantile(0.25 * p) < z);
    }
}

TEST_CASE("normal quantiles in place are those taken one by one, to the bit") {
    std::vector<double> p = {0.0, 1.0, 0.5, 0.075, 0.925, std::nextafter(0.925, 1.0), 1e-300};
    const RandomStream stream(13, 0, Purpose::test_services);
    for (std::uint64_t i = 0; i < 1000; ++i) {
        const double u = Draw(stream, i).uniform();
        p.push_back(i % 3 == 0 ? std::exp2(-100 * u) : u);
    }
    std::vector<double> quantiles = p;
    portable::normal_quantiles(quantiles);
    for (std::size_t i = 0; i < p.size(); ++i) {
        CAPTURE(p[i]);
        CHECK(quantiles[i] == portable::normal_quantile(p[i]));
    }
    std::vector<double> none = {std::numeric_limits<double>::quiet_NaN()};
    portable::normal_quantiles(none);
    CHECK(std::isnan(none[0]));
}

TEST_CASE("the gamma function") {
    CHECK(worst(
              portable::gamma, [](long double x) { return std::tgamma(x); }, 0.001, 171) < 25);
    CHECK(relative_error(portable::gamma(0.5), std::sqrt(3.14159265358979323846)) < 1e-15);
    CHECK(relative_error(portable::gamma(11.0), 3628800.0) < 1e-15);
    CHECK(portable::gamma(172.0) == infinity);
    for (double x = 1e-3; x < 1e6; x *= 1.1) {
        CAPTURE(x);
        CHECK(std::abs(portable::log_gamma(x) - std::lgamma(x)) < 1e-14 * std::max(1.0, std::abs(std::lgamma(x))));
    }
}

TEST_CASE("the incomplete gamma function agrees with its closed forms and its recurrence") {
    for (double x = 1e-6; x < 60; x *= 1.3) {
        CAPTURE(x);
        CHECK(relative_error(portable::gamma_p(1.0, x), -std::expm1(-x)) < 1e-14);
        CHECK(relative_error(portable::gamma_p(0.5, x), std::erf(std::sqrt(x))) < 1e-14);
        CHECK(relative_error(portable::gamma_p(1.5, x),
                             std::erf(std::sqrt(x)) - 2 * std::sqrt(x / 3.14159265358979323846) * std::exp(-x)) <
              (x > 0.1 ? 1e-13 : 1e-8));  // the closed form cancels for small x
    }
    // P(a, x) - P(a + 1, x) = x^a exp(-x) / Gamma(a + 1).
    for (const double a : {0.05, 0.7, 3.0, 9.5, 10.5, 80.0, 1e4}) {
        for (const double t : {-3.0, -1.0, -0.1, 0.0, 0.5, 2.0, 5.0}) {
            const double x = a + t * std::sqrt(a);
            if (x > 0) {
                CAPTURE(a);
                CAPTURE(x);
                const double difference = portable::gamma_p(a, x) - portable::gamma_p(a + 1, x);
                const double truth =
                    static_cast<double>(std::exp(static_cast<long double>(a) * std::log(static_cast<long double>(x)) -
                                                 x - std::lgamma(static_cast<long double>(a) + 1)));
                CHECK(difference == doctest::Approx(truth).epsilon(1e-11));
            }
        }
    }
    CHECK(portable::gamma_p(2.0, 0.0) == 0.0);
    CHECK(portable::gamma_p(2.0, infinity) == 1.0);
    CHECK(portable::gamma_p(1e6, 1e6) == doctest::Approx(0.5 + 1 / (3 * std::sqrt(2 * 3.14159265358979323846 * 1e6))));
}

TEST_CASE("results are these bits, on every machine") {
    // The sum of the bit patterns over a million arguments, so that no single ulp can change unseen. If this fails
    // after a deliberate change of an algorithm, every simulated number changes with it.
    const RandomStream stream(13, 0, Purpose::test_services);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 100'000; ++i) {
        const double u = Draw(stream, i).uniform();
        for (const double value : {portable::log(u), portable::exp(20 * u), portable::pow(u, 1.7),
                                   portable::normal_quantile(u), portable::normal_cdf(-6 * u)}) {
            sum = sum * 31 + std::bit_cast<std::uint64_t>(value);
        }
    }
    CHECK(sum == 8599040301127474343u);
}
