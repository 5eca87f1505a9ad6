// Explanations: what binds, in words, and differences between runs.
#include "sim/explain/explain.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "sim/pipeline/pipeline.h"
#include "tests/pipeline/sample_pipelines.h"

using namespace millrace;

namespace {

/// 64 rollouts of 10 s on 16 slots, update 8 s, weights 1 s.
PipelineConfig loop(std::int64_t slots, std::int64_t steps_ahead) {
    PipelineConfig config;
    config.workers.count = slots;
    config.workers.service = FirstOrderService{Distribution::constant(10.0)};
    config.trainers.batch = 64;
    config.trainers.service = FixedTrainerService{Distribution::constant(8.0)};
    config.weight_sync.transfer_s = Distribution::constant(1.0);
    config.weight_sync.trainers_wait = true;
    config.store = TransferQueueConfig{.capacity = (steps_ahead + 1) * 64};
    config.admission = AdmissionConfig{steps_ahead, 64};
    return config;
}

double part(const PeriodExplanation& explained, const std::string& activity) {
    for (const CyclePart& candidate : explained.parts) {
        if (candidate.activity == activity) {
            return candidate.duration_s;
        }
    }
    return 0.0;
}

bool says(const PeriodExplanation& explained, const std::string& words) {
    return explained.binds.find(words) != std::string::npos;
}

RunResult run(const PipelineConfig& config, std::uint64_t seed) {
    Scenario scenario;
    scenario.name = "test";
    scenario.seed = seed;
    scenario.pipeline = config;
    scenario.replications = 8;
    scenario.horizon.updates = 200;
    scenario.horizon.warmup_updates = 40;
    return run_replications(scenario, {.jobs = 1});
}

}  // namespace

TEST_CASE("what binds is what the critical cycle consists of") {
    const PeriodExplanation on_policy = explain_period(loop(16, 0));
    CHECK(on_policy.period_s == doctest::Approx(49.0));
    CHECK(says(on_policy, "The loop"));
    CHECK(part(on_policy, "generation") == doctest::Approx(40.0));
    CHECK(part(on_policy, "update") == doctest::Approx(8.0));
    CHECK(part(on_policy, "weight transfer") == doctest::Approx(1.0));
    CHECK(on_policy.cycle_updates == 1);

    const PeriodExplanation workers = explain_period(loop(16, 2));
    CHECK(workers.period_s == doctest::Approx(40.0));
    CHECK(says(workers, "The workers bind"));
    CHECK(part(workers, "update") == 0.0);

    const PeriodExplanation trainers = explain_period(loop(128, 3));
    CHECK(trainers.period_s == doctest::Approx(9.0));
    CHECK(says(trainers, "The trainers bind"));
    CHECK(part(trainers, "generation") == 0.0);

    PipelineConfig config = loop(128, 3);
    config.reward = RewardConfig{Distribution::constant(2.0), 4, 0.5};
    const PeriodExplanation graders = explain_period(config);
    CHECK(graders.period_s == doctest::Approx(64.0 * 2.0 / 4.0));
    CHECK(says(graders, "The reward stage binds"));
}

TEST_CASE("constant times lose nothing to a queue that blocks, however small") {
    PipelineConfig config = loop(1, 0);
    config.admission.reset();
    config.weight_sync.transfer_s = Distribution::constant(0.0);
    for (std::int64_t batch = 1; batch <= 7; ++batch) {
        for (std::int64_t slots = 1; slots <= 9; ++slots) {
            for (std::int64_t capacity = batch; capacity <= 2 * batch; ++capacity) {
                config.workers.count = slots;
                config.trainers.batch = batch;
                config.store = TransferQueueConfig{.capacity = capacity};
                const PeriodExplanation explained = explain_period(config);
                const double workers_s = 10.0 * static_cast<double>(batch) / static_cast<double>(slots);
                CHECK(explained.pipeline.exact());
                CHECK(explained.period_s == doctest::Approx(std::max(workers_s, 8.0)));
                CHECK(says(explained, workers_s > 8.0 ? "The workers bind" : "bind"));
            }
        }
    }
}

TEST_CASE("a buffer's workers are explained beside its trainers") {
    const PeriodExplanation explained = explain_period(millrace_test::first_order_pipeline(5.28, 5, 3));
    CHECK(says(explained, "never wait"));
    CHECK(says(explained, "each is used 3.168 times"));  // mu T/W
    CHECK(explained.rollouts_per_update.value() == doctest::Approx(20.0 * 5.0 / 5.28));
    CHECK_FALSE(explain_period(loop(16, 0)).rollouts_per_update.has_value());
}

TEST_CASE("a deadlock is named before anything is simulated") {
    PipelineConfig config = loop(16, 0);
    config.groups.size = 48;  // 64 tokens make one group of 48; the second is not complete before an update
    CHECK_NOTHROW(explain_period(loop(16, 0)));
    CHECK_THROWS_WITH_AS(explain_period(config), doctest::Contains("deadlock"), PipelineStuck);
}

TEST_CASE("differences are paired by replication") {
    PipelineConfig config = loop(16, 0);
    config.workers.service = FirstOrderService{Distribution::exponential(10.0)};
    PipelineConfig faster = config;
    faster.trainers.service = FixedTrainerService{Distribution::constant(6.0)};
    const RunResult base = run(config, 1);
    const std::string period = "time/update_period_s";
    REQUIRE(base.samples.at(period).size() == 8);
    double sum = 0.0;
    for (const double value : base.samples.at(period)) {
        sum += value;
    }
    CHECK(sum / 8.0 == doctest::Approx(base.metrics.at(period).mean));

    // With the same random numbers an on-policy update is exactly 2 s shorter; with others nobody could tell.
    const Estimate paired = paired_difference(base, run(faster, 1), period).value();
    CHECK(paired.mean == doctest::Approx(-2.0).epsilon(1e-9));
    CHECK(*paired.half_width < 1e-6);
    CHECK(*paired_difference(base, run(faster, 2), period)->half_width > 0.1);
    CHECK_FALSE(paired_difference(base, base, "no/such_metric").has_value());
}
