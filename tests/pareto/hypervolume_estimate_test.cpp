#include "sim/pareto/hypervolume_estimate.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/metrics/estimate.h"
#include "tests/pareto/synthetic_study.h"

using namespace millrace;
using namespace millrace_test;

TEST_CASE("the hypervolume of one design is a product of means, with the interval of its replications") {
    // One objective is exact, so the hypervolume is linear in the other: the jackknife is Student's t.
    const std::vector<double> x = {0.2, 0.5, 0.3, 0.6, 0.4};
    const ObjectiveSamples design{{x, std::vector<double>(5, 0.5)}};
    const HypervolumeEstimate volume = estimate_hypervolume({&design, 1}, {1.0, 1.0, 0.0}, 0.95);
    CHECK(volume.value == doctest::Approx(0.6 * 0.5));
    CHECK(volume.mean == doctest::Approx(0.3));
    REQUIRE(volume.half_width);
    const Estimate mean = estimate(x);
    CHECK(*volume.half_width == doctest::Approx(0.5 * *mean.half_width));
}

TEST_CASE("a hypervolume is not negative, and an interval that reaches below 0 says that it is cut there") {
    // Hardly better than the reference, with much noise.
    const ObjectiveSamples design{{{0.2, 1.7, 0.9, 1.1}, {0.9, 0.9, 0.9, 0.9}}};
    const HypervolumeEstimate volume = estimate_hypervolume({&design, 1}, {1.0, 1.0, 0.0}, 0.95);
    CHECK(volume.mean >= 0.0);
    REQUIRE(volume.half_width);
    CHECK(volume.mean < *volume.half_width);
    CHECK(volume.note.find("cut at 0") != std::string::npos);
    const ObjectiveSamples good{{{0.2, 0.21, 0.19, 0.2}, {0.1, 0.1, 0.1, 0.1}}};
    CHECK(estimate_hypervolume({&good, 1}, {1.0, 1.0, 0.0}, 0.95).note.empty());
}

TEST_CASE("a half-width that is rounding alone is 0") {
    const std::vector<double> equal(20, 0.31847133757961783);
    CHECK(*without_rounding(3.2, 8e-17) == 0.0);
    CHECK(*without_rounding(estimate(equal).mean, estimate(equal).half_width) == 0.0);
    CHECK(*without_rounding(3.2, 1e-9) == 1e-9);
    CHECK(*without_rounding(0.0, 1e-20) == 1e-20);
    CHECK_FALSE(without_rounding(3.2, std::nullopt));
}

namespace {

struct Quality {
    double coverage = 0.0;
    double bias_of_value = 0.0;
    double bias_of_mean = 0.0;
};

Quality quality_of_estimates(const ReplicationPlan& plan, double noise, double correlation) {
    constexpr int studies = 600;
    Quality quality;
    for (int s = 0; s < studies; ++s) {
        SyntheticStudy study = scattered_study(static_cast<std::uint64_t>(s), 12);
        study.noise = noise;
        study.correlation = correlation;
        const ObjectivePoint reference{1.2, 1.2, 0.0};
        const double truth = hypervolume(study.truth, reference, 2);
        const HypervolumeEstimate volume = estimate_hypervolume(study.samples(plan), reference, 0.95);
        REQUIRE(volume.half_width);
        quality.coverage += std::abs(volume.mean - truth) <= *volume.half_width ? 1.0 / studies : 0.0;
        quality.bias_of_value += (volume.value - truth) / studies;
        quality.bias_of_mean += (volume.mean - truth) / studies;
    }
    return quality;
}

const ReplicationPlan equal_15 = equal_plan(15);
const ReplicationPlan adaptive_15{8, 40, 12 * 15};

}  // namespace

TEST_CASE("intervals of hypervolumes cover the truth about as often as they say") {
    for (const ReplicationPlan& plan : {equal_15, adaptive_15}) {
        for (const double correlation : {0.0, 0.5}) {
            const double coverage = quality_of_estimates(plan, 0.08, correlation).coverage;
            INFO("at most ", plan.most, " replications, correlation ", correlation);
            CHECK(coverage > 0.91);
            CHECK(coverage < 0.985);
        }
    }
}

TEST_CASE("hypervolumes of means are too large, and the jackknife takes most of that away") {
    // Without common noise and with much of it, so that the bias stands out.
    const Quality equal = quality_of_estimates(equal_15, 0.2, 0.0);
    CHECK(equal.bias_of_value > 0.01);
    CHECK(std::abs(equal.bias_of_mean) < 0.3 * equal.bias_of_value);
    // Where what a mean says decides how often it is looked at there is a bias of its own, which stays.
    const Quality adaptive = quality_of_estimates(adaptive_15, 0.2, 0.0);
    CHECK(adaptive.bias_of_value > 0.01);
    CHECK(std::abs(adaptive.bias_of_mean) < 0.8 * adaptive.bias_of_value);
}

TEST_CASE("hypervolumes without an interval say why") {
    const ObjectiveSamples once{{{0.5}, {0.5}}};
    const HypervolumeEstimate one = estimate_hypervolume({&once, 1}, {1.0, 1.0, 0.0}, 0.95);
    CHECK(one.value == 0.25);
    CHECK_FALSE(one.half_width);
    CHECK(one.note == "a design with one replication has no interval");
    const ObjectiveSamples nothing;
    CHECK_FALSE(estimate_hypervolume({&nothing, 1}, {1.0, 1.0, 0.0}, 0.95).note.empty());
}

TEST_CASE("the default reference lies beyond every design") {
    const std::vector<ObjectivePoint> means = {{1.0, 5.0, 0.0}, {3.0, 5.0, 0.0}};
    const ObjectivePoint reference = default_reference(means);
    CHECK(reference[0] == doctest::Approx(3.2));
    CHECK(reference[1] == doctest::Approx(5.5));
    CHECK(default_reference(std::vector{ObjectivePoint{-2.0, 0.0, 0.0}})[0] == doctest::Approx(-1.8));
    CHECK(default_reference(std::vector{ObjectivePoint{-2.0, 0.0, 0.0}})[1] == doctest::Approx(1.0));
}
