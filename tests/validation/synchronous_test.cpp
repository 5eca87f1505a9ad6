// The shipped synchronous scenario, as a user runs it, against the exact second moment of the theory.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "sim/run/replications.h"
#include "sim/scenario/decode.h"
#include "sim/theory/optimal_design.h"

using namespace millrace;

namespace {

void check_inside(const RunResult& result, const std::string& metric, double truth) {
    const Estimate& found = result.metrics.at(metric);
    INFO(metric << ": " << found.mean << " +- " << *found.half_width << ", truth " << truth);
    CHECK(std::abs(found.mean - truth) <= *found.half_width);
    CHECK(*found.half_width < 0.01 * truth);
}

}  // namespace

TEST_CASE("the synchronous scenario has the exact second moment and the staleness of a buffer of H = 7 updates") {
    const Scenario scenario = load_scenario(MILLRACE_SOURCE_DIR "/scenarios/paper/synchronous.json", {});
    const RunResult result = run_replications(scenario, {.jobs = 2});
    const double exact = second_moment({.batch = 60, .buffer = 84, .fresh_per_step = 12}, 0.5, Draws::with_replacement);
    check_inside(result, "noise/relative_variance", 60.0 * exact);  // on-policy: 1/B
    check_inside(result, "staleness/mean", 3.0);                    // (H - 1) / 2
    CHECK(result.metrics.at("staleness/max").mean == 6.0);
    CHECK(*result.metrics.at("staleness/max").half_width == 0.0);
    CHECK(result.metrics.at("rollouts/generated_per_update").mean == 12.0);
    CHECK(result.metrics.at("replay/mean").mean == doctest::Approx(5.0).epsilon(1e-12));
}

TEST_CASE("without replacement, too") {
    const Scenario scenario = load_scenario(MILLRACE_SOURCE_DIR "/scenarios/paper/synchronous.json",
                                            {"store.sampling=uniform_without_replacement", "replications=40"});
    const RunResult result = run_replications(scenario, {.jobs = 2});
    const double exact =
        second_moment({.batch = 60, .buffer = 84, .fresh_per_step = 12}, 0.5, Draws::without_replacement);
    check_inside(result, "noise/relative_variance", 60.0 * exact);
    check_inside(result, "staleness/mean", 3.0);
}
