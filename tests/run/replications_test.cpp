#include "sim/run/replications.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "sim/pipeline/pipeline.h"
#include "sim/run/formulas.h"
#include "tests/pipeline/sample_pipelines.h"

using namespace millrace;
using namespace millrace_test;

namespace {

Scenario scenario_of(const PipelineConfig& config, std::int64_t updates, std::int64_t replications) {
    Scenario scenario;
    scenario.name = "test";
    scenario.seed = 5;
    scenario.replications = replications;
    scenario.horizon.updates = updates;
    scenario.pipeline = config;
    return scenario;
}

/// Everything a result holds, to the last bit.
std::string fingerprint(const RunResult& result, const std::string& steps) {
    std::ostringstream out;
    out << std::hexfloat;
    for (const auto& [key, e] : result.metrics) {
        out << key << ' ' << e.mean << ' ' << e.half_width.value_or(-1.0) << '\n';
    }
    for (const auto& [key, histogram] : result.histograms) {
        out << key;
        for (const std::uint64_t count : histogram.counts()) {
            out << ' ' << count;
        }
        out << '\n';
    }
    out << result.warmup_updates << ' ' << result.events << ' ' << result.order_digest << '\n' << steps;
    return out.str();
}

}  // namespace

TEST_CASE("the result does not depend on the number of threads") {
    for (const NamedPipeline& sample : sample_pipelines()) {
        INFO(sample.name);
        const Scenario scenario = scenario_of(sample.config, 80, 5);
        std::ostringstream one_steps;
        std::ostringstream four_steps;
        const RunResult one = run_replications(scenario, {.jobs = 1, .steps = &one_steps});
        const RunResult four = run_replications(scenario, {.jobs = 4, .steps = &four_steps});
        CHECK(fingerprint(one, one_steps.str()) == fingerprint(four, four_steps.str()));
        CHECK(one.metrics.size() > 30);
    }
}

TEST_CASE("role fractions sum to one and staleness has two parts") {
    for (const NamedPipeline& sample : sample_pipelines()) {
        INFO(sample.name);
        const RunResult result = run_replications(scenario_of(sample.config, 120, 3), {.jobs = 2});
        const auto mean = [&](const char* key) { return result.metrics.at(key).mean; };
        CHECK(mean("workers/busy") + mean("workers/paused") + mean("workers/blocked") + mean("workers/starved") ==
              doctest::Approx(1.0).epsilon(1e-12));
        CHECK(mean("trainers/busy") + mean("trainers/waiting") + mean("trainers/stalled") ==
              doctest::Approx(1.0).epsilon(1e-12));
        CHECK(mean("staleness/pre_store") + mean("staleness/in_store") == doctest::Approx(mean("staleness/mean")));
        CHECK(mean("staleness/p50") <= mean("staleness/p99"));
        CHECK(mean("staleness/p99") <= mean("staleness/max"));
        // The window of the histogram is that of the sums.
        CHECK(result.histograms.at("staleness").mean() == doctest::Approx(mean("staleness/mean")).epsilon(1e-9));
    }
}

TEST_CASE("a warm-up that takes half the run is warned about") {
    PipelineConfig config = first_order_pipeline(5.28, 5, 3, 6000);
    const RunResult result = run_replications(scenario_of(config, 100, 3), {});
    REQUIRE_FALSE(result.warnings.empty());
    CHECK(result.warnings.front().find("horizon.updates") != std::string::npos);
    Scenario fixed = scenario_of(config, 100, 3);
    fixed.horizon.warmup_updates = 7;
    CHECK(run_replications(fixed, {}).warmup_updates == 7);
}

TEST_CASE("a buffer that cannot hold a batch is warned about") {
    const auto warns = [](std::int64_t capacity) {
        Scenario scenario = scenario_of(first_order_pipeline(5.28, 5, 3, capacity), 60, 2);
        scenario.horizon.warmup_updates = 20;
        const std::vector<std::string> warnings = run_replications(scenario, {}).warnings;
        return std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
            return warning.find("fewer than a batch of 60") != std::string::npos;
        });
    };
    CHECK(warns(32));
    CHECK_FALSE(warns(60));
}

TEST_CASE("an interrupted run keeps the replications that were complete") {
    const Scenario scenario = scenario_of(first_order_pipeline(5.28, 5, 3), 2000, 50);
    std::atomic<bool> interrupt{false};
    RunOptions options;
    options.interrupt = &interrupt;
    options.progress = [&](double share) { interrupt = interrupt || share > 0.1; };
    const RunResult result = run_replications(scenario, options);
    CHECK(result.interrupted);
    CHECK(result.replications_done < 50);
    if (result.replications_done > 0) {
        CHECK(result.metrics.at("replay/mean").replications == result.replications_done);
    } else {
        CHECK_FALSE(result.warnings.empty());
    }
}

TEST_CASE("a stuck pipeline fails the run with its explanation") {
    PipelineConfig config = first_order_pipeline(5.28, 5, 3);
    config.groups.size = 8;
    config.store = TransferQueueConfig{.capacity = 63};
    CHECK_THROWS_AS(run_replications(scenario_of(config, 100, 3), {.jobs = 2}), PipelineStuck);
}

TEST_CASE("the formulas beside the simulation agree with it where they claim to hold") {
    Scenario scenario = scenario_of(first_order_pipeline(5.28, 5, 3), 600, 6);
    const RunResult result = run_replications(scenario, {.jobs = 2});
    const auto& formula = result.formulas;
    for (const char* key : {"compute/gamma_simulated", "compute/effective_mu", "time/update_period_s", "replay/mean",
                            "rollouts/generated_per_update", "noise/relative_variance", "staleness/in_store"}) {
        INFO(key << ": simulated " << result.metrics.at(key).mean << ", formula " << formula.at(key));
        CHECK(result.metrics.at(key).mean == doctest::Approx(formula.at(key)).epsilon(0.03));
    }
    // Groups and slots make rollouts wait; the formula knows their mean.
    CHECK(result.metrics.at("staleness/pre_store").mean ==
          doctest::Approx(formula.at("staleness/pre_store")).epsilon(0.1));
}

TEST_CASE("samples hold each replication's values, and what a replication does depends on its number only") {
    for (const NamedPipeline& sample : sample_pipelines()) {
        INFO(sample.name);
        Scenario scenario = scenario_of(sample.config, 60, 5);
        scenario.horizon.warmup_updates = 10;
        const RunResult all = run_replications(scenario, {.jobs = 2});
        for (const auto& [key, values] : all.samples) {
            INFO(key);
            REQUIRE(values.size() == 5);
            std::vector<double> defined = values;
            std::erase_if(defined, [](double value) { return std::isnan(value); });
            if (key != "compute/gamma") {
                CHECK(estimate(defined).mean == all.metrics.at(key).mean);
            }
        }
        CHECK(all.samples.size() == all.metrics.size());

        scenario.replications = 2;
        const RunResult later = run_replications(scenario, {.first_replication = 3});
        for (const auto& [key, values] : later.samples) {
            INFO(key);
            REQUIRE(values.size() == 2);
            for (std::size_t i = 0; i < 2; ++i) {
                const double whole = all.samples.at(key)[3 + i];
                CHECK((values[i] == whole || (std::isnan(values[i]) && std::isnan(whole))));
            }
        }
    }
}

TEST_CASE("the step log numbers replications from the first one asked for") {
    Scenario scenario = scenario_of(first_order_pipeline(5.28, 5, 3), 20, 4);
    std::ostringstream all;
    std::ostringstream head;
    std::ostringstream tail;
    run_replications(scenario, {.steps = &all});
    scenario.replications = 1;
    run_replications(scenario, {.steps = &head});
    scenario.replications = 3;
    run_replications(scenario, {.jobs = 2, .first_replication = 1, .steps = &tail});
    CHECK(head.str() + tail.str() == all.str());
}

TEST_CASE("the warm-up found without learning is the one a run finds") {
    const Scenario scenario = scenario_of(first_order_pipeline(5.28, 5, 3, 600), 100, 4);
    const RunResult result = run_replications(scenario, {});
    std::vector<std::string> warnings;
    CHECK(automatic_warmup(scenario, {.jobs = 2}, warnings) == result.warmup_updates);
    CHECK(result.warmup_updates > 10);
}
