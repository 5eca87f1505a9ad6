// The shipped paper scenarios against the published numbers and the first-order formulas.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sim/run/formulas.h"
#include "sim/run/replications.h"
#include "sim/scenario/decode.h"

using namespace millrace;

namespace {

Scenario paper(const std::string& file, const std::vector<std::string>& overrides = {}) {
    return load_scenario(MILLRACE_SOURCE_DIR "/scenarios/paper/" + file + ".json", overrides);
}

void check_inside(const RunResult& result, const std::string& metric, double truth) {
    const Estimate& found = result.metrics.at(metric);
    INFO(metric << ": " << found.mean << " +- " << *found.half_width << ", truth " << truth);
    CHECK(std::abs(found.mean - truth) <= *found.half_width);
    CHECK(*found.half_width < 0.02 * truth);
}

struct Split {
    const char* name;
    double workers;
    double trainers;
};
constexpr Split splits[] = {{"6-2", 6, 2}, {"5-3", 5, 3}, {"4-4", 4, 4}};

}  // namespace

TEST_CASE("replay ratio and compute ratio of the paper's buffered runs lie inside their intervals, narrower than 2 %") {
    const std::pair<const char*, double> models[] = {{"qwen2.5-7b", 5.28}, {"qwen3-0.6b", 6.84}};
    for (const auto& [model, mu] : models) {
        for (const Split& split : splits) {
            INFO(model << " " << split.name);
            const RunResult result = run_replications(paper(std::string(model) + "-" + split.name), {.jobs = 2});
            check_inside(result, "replay/mean", mu * split.trainers / split.workers);
            check_inside(result, "compute/effective_mu", mu);
            const double gamma = (1.0 + split.workers / split.trainers) / (1.0 + mu);
            CHECK(result.metrics.at("compute/gamma").mean == doctest::Approx(gamma).epsilon(1e-12));
            // Nobody waits, so the simulated period is the trainers' and the ratio exact.
            CHECK(result.metrics.at("compute/gamma_simulated").mean == doctest::Approx(gamma).epsilon(1e-9));
            CHECK(*result.metrics.at("compute/gamma_simulated").half_width < 1e-9);
        }
    }
}

TEST_CASE("the published setting: predicted savings with and without replacement") {
    const RunResult with = run_replications(paper("qwen2.5-7b-5-3"), {.jobs = 2});
    check_inside(with, "noise/relative_compute_to_target", 8.0 / 3.0 / 6.28 * (1.0 + 59.0 / 84.0));
    CHECK(with.metrics.at("noise/relative_compute_to_target").mean == doctest::Approx(0.723).epsilon(0.002));

    const RunResult without =
        run_replications(paper("qwen2.5-7b-5-3", {"store.sampling=uniform_without_replacement"}), {.jobs = 2});
    CHECK(without.metrics.at("noise/relative_compute_to_target").mean == doctest::Approx(0.425).epsilon(0.002));

    // The variant that the authors ran: every trainer repeats within its own shard only.
    const RunResult sharded = run_replications(paper("qwen2.5-7b-5-3", {"store.sharded=true"}), {.jobs = 2});
    check_inside(sharded, "noise/relative_variance", 1.0 + 19.0 / 28.0);
}

TEST_CASE("without a buffer every rollout is used once and the idle side pays for the imbalance") {
    for (const Split& split : splits) {
        INFO(split.name);
        const Scenario scenario = paper(std::string("qwen2.5-7b-") + split.name + "-no-buffer");
        const RunResult result = run_replications(scenario, {.jobs = 2});
        const double period = std::max(60.0 / split.trainers, 60.0 * 5.28 / split.workers);
        CHECK(result.metrics.at("replay/mean").mean == doctest::Approx(1.0).epsilon(0.002));
        CHECK(result.metrics.at("time/update_period_s").mean == doctest::Approx(period).epsilon(0.02));
        CHECK(result.metrics.at("compute/active_gpu_s_per_update").mean == doctest::Approx(60.0 * 6.28).epsilon(0.02));
    }
}

TEST_CASE("weights that change in place raise the effective mu as trainers are added") {
    // The open question of the paper's table: measured replay ratios exceed mu T / W by more, the more trainers there
    // are. Pauses of a fixed length per update do that: updates come faster with T, so workers pause more often.
    double before = 5.28;
    for (const Split& split : splits) {
        const RunResult result =
            run_replications(paper(std::string("qwen2.5-7b-") + split.name,
                                   {"weight_sync.in_flight=in_place", "weight_sync.transfer_s=2", "replications=4"}),
                             {.jobs = 2});
        const double mu = result.metrics.at("compute/effective_mu").mean;
        const double paused = 2.0 / (60.0 / split.trainers);
        CHECK(mu == doctest::Approx(5.28 / (1.0 - paused)).epsilon(0.01));
        CHECK(mu > before);
        before = mu;
    }
}
