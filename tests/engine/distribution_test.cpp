#include "sim/engine/distribution.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

using namespace millrace;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr auto clip = TruncateMode::clip;
constexpr auto resample = TruncateMode::resample;

struct Named {
    std::string name;
    Distribution law;
    double mean, second_moment;  // by the textbook
};

Distribution heavy_mixture() {
    return Distribution::mixture({{3, Distribution::exponential(1)}, {1, Distribution::pareto(2, 1.5)}});
}

// Laws whose moments have a closed form that can be written down by hand.
std::vector<Named> laws_with_known_moments() {
    const double gamma_of_5_thirds = std::tgamma(1 + 1 / 1.5);
    return {
        {"constant", Distribution::constant(3), 3, 9},
        {"uniform", Distribution::uniform(2, 5), 3.5, 13},
        {"exponential", Distribution::exponential(0.7), 0.7, 2 * 0.49},
        {"lognormal", Distribution::lognormal(5, 0.8), 5, 25 * 1.64},
        {"lognormal from quantiles",
         Distribution::lognormal_from_quantiles(std::exp(1), std::exp(1 + 2.3263478740408408)), std::exp(1.5),
         std::exp(4)},
        {"gamma, shape 4", Distribution::gamma(2, 0.5), 2, 4 * 1.25},
        {"gamma, shape 1/4", Distribution::gamma(2, 2), 2, 4 * 5},
        {"weibull, shape 1.5", Distribution::weibull(2, 1.5), 2 * gamma_of_5_thirds, 4 * std::tgamma(1 + 2 / 1.5)},
        {"weibull, shape 0.5", Distribution::weibull(1, 0.5), 2, 24},
        {"pareto", Distribution::pareto(1, 6), 6.0 / 5, 6.0 / 4},
        {"clipped exponential", Distribution::truncated(Distribution::exponential(1), 2, clip), 1 - std::exp(-2),
         2 - 6 * std::exp(-2)},
        {"resampled exponential", Distribution::truncated(Distribution::exponential(1), 2, resample),
         1 - 2 / std::expm1(2), 2 - 8 / std::expm1(2)},
        {"clipped pareto without a mean", Distribution::truncated(Distribution::pareto(1, 1), std::exp(1), clip), 2,
         2 * std::exp(1) - 1},
        {"mixture", Distribution::mixture({{1, Distribution::constant(1)}, {3, Distribution::uniform(0, 2)}}), 1, 1.25},
        {"empirical", Distribution::empirical({4, 1, 1, 2}), 2, 5.5},
        {"quantile table", Distribution::quantile_table({{0, 1}, {0.5, 1}, {0.5, 2}, {1, 4}}), 2, 0.5 + 28.0 / 6},
    };
}

struct Bounded {
    Distribution law;
    std::vector<double> kinks;  // where the cdf is not smooth, the maximum last
};

// Truncations of all kinds of laws, down to mixtures of truncated and truncated mixtures.
std::vector<Bounded> bounded_laws() {
    const auto lognormal = Distribution::lognormal(5, 0.8);
    const auto table = Distribution::quantile_table({{0, 1}, {0.2, 1}, {0.5, 2}, {0.5, 3}, {1, 7}});
    const auto mixed = Distribution::mixture({{1, Distribution::truncated(lognormal, 6, clip)},
                                              {2, Distribution::truncated(Distribution::gamma(2, 2), 9, resample)},
                                              {1, Distribution::constant(4)}});
    return {
        {Distribution::truncated(lognormal, 6, clip), {6}},
        {Distribution::truncated(lognormal, 6, resample), {6}},
        {Distribution::truncated(lognormal, 1.2, resample), {1.2}},
        {Distribution::truncated(Distribution::gamma(2, 0.5), 3, clip), {3}},
        {Distribution::truncated(Distribution::gamma(2, 0.5), 0.5, resample), {0.5}},
        {Distribution::truncated(Distribution::gamma(1, 0.01), 1.01, resample), {1.01}},
        {Distribution::truncated(Distribution::weibull(1, 0.7), 2, resample), {2}},
        {Distribution::truncated(Distribution::weibull(1, 0.7), 2, clip), {2}},
        {Distribution::truncated(Distribution::pareto(1, 2), 30, resample), {1, 30}},
        {Distribution::truncated(Distribution::pareto(1, 0.6), 30, clip), {1, 30}},
        {Distribution::truncated(Distribution::uniform(1, 3), 2.5, resample), {1, 2.5}},
        {Distribution::truncated(Distribution::uniform(1, 3), 2.5, clip), {1, 2.5}},
        {Distribution::truncated(Distribution::empirical({1, 2, 2, 5}), 3, resample), {1, 2, 3}},
        {Distribution::truncated(table, 5, resample), {1, 2, 3, 5}},
        {Distribution::truncated(table, 2.5, resample), {1, 2, 2.5}},
        {Distribution::truncated(table, 5, clip), {1, 2, 3, 5}},
        {Distribution::truncated(heavy_mixture(), 40, clip), {2, 40}},
        {Distribution::truncated(heavy_mixture(), 40, resample), {2, 40}},
        {Distribution::truncated(heavy_mixture(), 1, resample), {1}},
        {mixed, {4, 6, 9}},
        {Distribution::truncated(mixed, 5, resample), {4, 5}},
        {Distribution::truncated(mixed, 7, clip), {4, 6, 7}},
        {Distribution::truncated(Distribution::truncated(lognormal, 6, clip), 4, resample), {4}},
        {Distribution::truncated(Distribution::truncated(lognormal, 6, resample), 4, resample), {4}},
        {Distribution::truncated(Distribution::truncated(lognormal, 6, resample), 4, clip), {4}},
        {Distribution::truncated(Distribution::truncated(lognormal, 4, clip), 6, resample), {4}},
    };
}

std::vector<double> draws(const Distribution& law, std::uint64_t n) {
    const RandomStream stream(20, 0, Purpose::test_services);
    std::vector<double> values;
    for (std::uint64_t i = 0; i < n; ++i) {
        Draw draw(stream, i);
        values.push_back(law.sample(draw));
    }
    return values;
}

// Kolmogorov-Smirnov distance, taken from the right at every value so that laws with atoms can be tested too.
double distance_to_cdf(std::vector<double> values, const Distribution& law) {
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    double largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i + 1 == values.size() || values[i + 1] != values[i]) {
            largest = std::max(largest, std::abs(static_cast<double>(i + 1) / n - law.cdf(values[i])));
        }
    }
    return largest;
}

// P(sqrt(n) D > 2.6) is about 3e-6 (Kolmogorov's law); laws with atoms exceed it more rarely.
constexpr double kolmogorov_bound = 2.6;

void check_samples(const Distribution& law) {
    CAPTURE(law.describe());
    const auto values = draws(law, 20'000);
    const auto n = static_cast<double>(values.size());
    CHECK(distance_to_cdf(values, law) < kolmogorov_bound / std::sqrt(n));
    for (const double value : values) {
        REQUIRE(value >= 0);
        REQUIRE(value <= law.maximum());
    }
}

}  // namespace

TEST_CASE("moments are those of the textbook") {
    for (const Named& named : laws_with_known_moments()) {
        CAPTURE(named.name);
        CHECK(named.law.mean() == doctest::Approx(named.mean).epsilon(1e-13));
        CHECK(named.law.second_moment() == doctest::Approx(named.second_moment).epsilon(1e-13));
    }
}

TEST_CASE("samples follow the cdf") {
    for (const Named& named : laws_with_known_moments()) {
        check_samples(named.law);
    }
    for (const Bounded& bounded : bounded_laws()) {
        check_samples(bounded.law);
    }
}

TEST_CASE("samples drawn several at once are those drawn one by one, to the bit") {
    std::vector<Distribution> laws = {Distribution::constant(3.0), Distribution::empirical({1.0, 5.0, 2.0}),
                                      Distribution::quantile_table({{0.0, 1.0}, {0.3, 2.0}, {1.0, 9.0}})};
    for (const Named& named : laws_with_known_moments()) {
        laws.push_back(named.law);
        laws.push_back(Distribution::truncated(named.law, 1.5 * named.mean, TruncateMode::clip));
    }
    for (const Bounded& bounded : bounded_laws()) {
        laws.push_back(bounded.law);
    }
    constexpr std::size_t n = 1000;  // not a multiple of any block
    const RandomStream stream(20, 0, Purpose::test_services);
    for (const Distribution& law : laws) {
        CAPTURE(law.describe());
        std::vector<double> at_once(n);
        law.sample(stream, 0, std::span(at_once).first(7));
        law.sample(stream, 7, std::span(at_once).subspan(7));
        CHECK(at_once == draws(law, n));
    }
}

TEST_CASE("samples have the stated moments") {
    for (const Named& named : laws_with_known_moments()) {
        CAPTURE(named.name);
        const auto values = draws(named.law, 40'000);
        const auto n = static_cast<double>(values.size());
        double sum = 0, squares = 0, fourth = 0;
        for (const double value : values) {
            sum += value;
            squares += value * value;
            fourth += value * value * value * value;
        }
        const double variance = squares / n - (sum / n) * (sum / n);
        const double variance_of_square = fourth / n - (squares / n) * (squares / n);
        CHECK(std::abs(sum / n - named.mean) <= 4.5 * std::sqrt(variance / n) + 1e-12);
        CHECK(std::abs(squares / n - named.second_moment) <= 4.5 * std::sqrt(variance_of_square / n) + 1e-12);
    }
}

TEST_CASE("moments of truncated laws are the integrals of their survival function, to 1e-9") {
    for (const Bounded& bounded : bounded_laws()) {
        const Distribution& law = bounded.law;
        CAPTURE(law.describe());
        double mean = 0;
        double second_moment = 0;
        double low = 0;
        for (const double kink : bounded.kinks) {
            // Just inside the interval, so that no end falls on a jump.
            const double high = kink * (1 - 1e-15);
            using Rule = boost::math::quadrature::gauss_kronrod<double, 61>;
            mean += Rule::integrate([&](double x) { return 1 - law.cdf(x); }, low, high, 15, 1e-12);
            second_moment += Rule::integrate([&](double x) { return 2 * x * (1 - law.cdf(x)); }, low, high, 15, 1e-12);
            low = kink;
        }
        CHECK(low >= law.maximum());
        CHECK(law.mean() == doctest::Approx(mean).epsilon(1e-9));
        CHECK(law.second_moment() == doctest::Approx(second_moment).epsilon(1e-9));
    }
}

TEST_CASE("a lognormal law given by its quantiles has them") {
    const auto law = Distribution::lognormal_from_quantiles(8.0, 50.0);
    CHECK(law.cdf(8) == doctest::Approx(0.5).epsilon(1e-14));
    CHECK(law.cdf(50) == doctest::Approx(0.99).epsilon(1e-14));
}

TEST_CASE("clipping puts an atom at the cap, resampling does not") {
    const auto law = Distribution::exponential(1);
    const auto clipped = Distribution::truncated(law, 1, clip);
    const auto resampled = Distribution::truncated(law, 1, resample);
    CHECK(clipped.cdf(std::nextafter(1.0, 0.0)) == doctest::Approx(1 - std::exp(-1)));
    CHECK(resampled.cdf(std::nextafter(1.0, 0.0)) == doctest::Approx(1));
    CHECK(clipped.maximum() == 1);
    CHECK(resampled.maximum() == 1);
}

TEST_CASE("conditioning on an unlikely event keeps its precision") {
    // Given X <= c for a small c, an exponential law is nearly uniform on [0, c]: mean c/2 (1 - c/6 + ...).
    const auto law = Distribution::truncated(Distribution::exponential(1), 1e-9, resample);
    CHECK(law.mean() == doctest::Approx(0.5e-9 * (1 - 1e-9 / 6)).epsilon(1e-13));
    check_samples(law);
    // Near 0 a gamma law of shape 4 has density proportional to x^3: mean 4/5 of the cap.
    const auto gamma = Distribution::truncated(Distribution::gamma(4, 0.5), 1e-6, resample);
    CHECK(gamma.mean() == doctest::Approx(0.8e-6).epsilon(1e-6));
    check_samples(gamma);
}

TEST_CASE("moments are infinite where the law says so") {
    CHECK(Distribution::pareto(1, 1).mean() == infinity);
    CHECK(Distribution::pareto(1, 1.5).mean() == doctest::Approx(3));
    CHECK(Distribution::pareto(1, 2).second_moment() == infinity);
    CHECK(heavy_mixture().second_moment() == infinity);
    CHECK(Distribution::exponential(1).maximum() == infinity);
    CHECK(Distribution::truncated(heavy_mixture(), 1e9, clip).second_moment() < infinity);
}

TEST_CASE("laws without spread are constants") {
    for (const auto& law :
         {Distribution::constant(2), Distribution::uniform(2, 2), Distribution::lognormal(2, 0),
          Distribution::gamma(2, 0), Distribution::lognormal_from_quantiles(2, 2), Distribution::empirical({2, 2}),
          Distribution::truncated(Distribution::pareto(3, 1), 2, clip),
          Distribution::quantile_table({{0, 1}, {0, 2}, {1, 2}, {1, 3}})}) {
        CAPTURE(law.describe());
        CHECK(law.is_constant());
        CHECK(draws(law, 1)[0] == 2);
        CHECK(law.mean() == doctest::Approx(2).epsilon(1e-15));
        CHECK(law.second_moment() == doctest::Approx(4).epsilon(1e-15));
        CHECK(law.maximum() == 2);
        CHECK(law.cdf(1.99) == 0);
        CHECK(law.cdf(2) == 1);
    }
    CHECK(Distribution::exponential(0).is_constant());
    CHECK_FALSE(Distribution::exponential(1).is_constant());
}

TEST_CASE("a sample depends on its key alone, not on the draws before it") {
    const RandomStream stream(1, 2, Purpose::trainer_service);
    const auto law = Distribution::gamma(1, 2);
    Draw again(stream, 17);
    Draw once(stream, 17);
    Draw other(stream, 16);
    law.sample(other);
    CHECK(law.sample(once) == law.sample(again));
}

TEST_CASE("impossible parameters are refused") {
    const double nan = std::nan("");
    const auto refused = [](auto make) { CHECK_THROWS_AS(make(), std::invalid_argument); };
    for (const double bad : {-1.0, nan, infinity}) {
        refused([=] { return Distribution::constant(bad); });
        refused([=] { return Distribution::uniform(bad, 2); });
        refused([=] { return Distribution::uniform(0, bad); });
        refused([=] { return Distribution::exponential(bad); });
        refused([=] { return Distribution::lognormal(bad, 1); });
        refused([=] { return Distribution::lognormal(1, bad); });
        refused([=] { return Distribution::lognormal_from_quantiles(bad, 2); });
        refused([=] { return Distribution::lognormal_from_quantiles(1, bad); });
        refused([=] { return Distribution::gamma(bad, 1); });
        refused([=] { return Distribution::gamma(1, bad); });
        refused([=] { return Distribution::weibull(bad, 1); });
        refused([=] { return Distribution::weibull(1, bad); });
        refused([=] { return Distribution::pareto(bad, 1); });
        refused([=] { return Distribution::pareto(1, bad); });
        refused([=] { return Distribution::empirical({1, bad}); });
        refused([=] { return Distribution::quantile_table({{0, 1}, {1, bad}}); });
        refused([=] { return Distribution::quantile_table({{0, 1}, {bad, 2}, {1, 3}}); });
        refused([=] { return Distribution::mixture({{bad, Distribution::constant(1)}}); });
        refused([=] { return Distribution::truncated(Distribution::exponential(1), bad, clip); });
    }
    refused([] { return Distribution::uniform(2, 1); });
    refused([] { return Distribution::lognormal_from_quantiles(2, 1); });
    refused([] { return Distribution::lognormal_from_quantiles(0, 1); });
    refused([] { return Distribution::weibull(1, 0); });
    refused([] { return Distribution::pareto(0, 1); });
    refused([] { return Distribution::empirical({}); });
    refused([] { return Distribution::mixture({}); });
    refused([] { return Distribution::mixture({{0, Distribution::constant(1)}}); });
    refused([] { return Distribution::quantile_table({{0, 1}}); });
    refused([] { return Distribution::quantile_table({{0.1, 1}, {1, 2}}); });
    refused([] { return Distribution::quantile_table({{0, 1}, {0.9, 2}}); });
    refused([] { return Distribution::quantile_table({{0, 1}, {0.6, 2}, {0.5, 3}, {1, 4}}); });
    refused([] { return Distribution::quantile_table({{0, 2}, {1, 1}}); });
    // Nothing lies at or below the cap.
    refused([] { return Distribution::truncated(Distribution::pareto(2, 1), 2, resample); });
    refused([] { return Distribution::truncated(Distribution::constant(3), 2, resample); });
    refused([] { return Distribution::truncated(Distribution::empirical({4, 5}), 3, resample); });
    refused([] { return Distribution::truncated(Distribution::exponential(1), 0, resample); });
}

TEST_CASE("a refusal says what was expected and what came") {
    CHECK_THROWS_WITH(Distribution::exponential(-2),
                      "The mean of an exponential law must be a finite number that is not negative, not -2.");
    CHECK_THROWS_WITH(
        Distribution::truncated(Distribution::pareto(2, 1), 1.5, resample),
        "A law cannot be resampled below a cap of 1.5: pareto(minimum 2, shape 1) never takes such a value.");
}

TEST_CASE("a law describes itself in one line") {
    CHECK(Distribution::lognormal(5.28, 0.5).describe() == "lognormal(mean 5.28, cv 0.5)");
    CHECK(Distribution::truncated(Distribution::exponential(1), 3, clip).describe() ==
          "truncated(exponential(mean 1), at most 3, clipped)");
    CHECK(heavy_mixture().describe() == "mixture(3 x exponential(mean 1), 1 x pareto(minimum 2, shape 1.5))");
}
