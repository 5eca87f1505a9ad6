#include "sim/pipeline/pipeline.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/engine/allocation_counter.h"
#include "tests/pipeline/sample_pipelines.h"

using namespace millrace;
using namespace millrace_test;

namespace {

void check_little(const std::string& station, const StationFlow& flow, Time now, double present_sojourn_s) {
    INFO(station);
    // Up to any instant, the integral of the number present is the time spent by those who left plus the time so far
    // of those still there. The latter is known only within bounds: nobody has been there longer than the run.
    const double difference = flow.presence_s(now) - flow.sojourn_s();
    CHECK(difference >= -1e-6 * flow.presence_s(now));
    CHECK(difference <= present_sojourn_s * (1.0 + 1e-9) + 1e-6);
    // L = lambda W with the edges negligible.
    if (flow.left() > 5000) {
        const double throughput = static_cast<double>(flow.left()) / seconds(now);
        const double sojourn = flow.sojourn_s() / static_cast<double>(flow.left());
        CHECK(flow.presence_s(now) / seconds(now) == doctest::Approx(throughput * sojourn).epsilon(0.03));
    }
}

}  // namespace

TEST_CASE("Little's law, conservation of rollouts and role fractions hold in every kind of pipeline") {
    for (const NamedPipeline& sample : sample_pipelines()) {
        INFO(sample.name);
        Pipeline pipeline(sample.config, 7, 0);
        constexpr std::int64_t updates = 400;
        REQUIRE(pipeline.run(updates));
        const PipelineFlows& flows = pipeline.flows();
        const Time now = pipeline.now();
        const ReplicationRecord record = pipeline.take_record();
        REQUIRE(record.updates.size() == updates);
        const UpdateRecord& end = record.updates.back();

        const auto at_most = [&](const StationFlow& flow) {
            return static_cast<double>(flow.present()) * seconds(now);
        };
        check_little("workers", flows.workers, now, at_most(flows.workers));
        check_little("reward", flows.reward, now, at_most(flows.reward));
        check_little("assembly", flows.assembly, now, at_most(flows.assembly));
        check_little("store", flows.store, now, at_most(flows.store));

        // What leaves a station has entered the next one, and what is anywhere is alive.
        if (flows.reward.entered() > 0) {
            CHECK(flows.workers.left() == flows.reward.entered());
            CHECK(flows.reward.left() == flows.assembly.entered());
        } else {
            CHECK(flows.workers.left() == flows.assembly.entered());
        }
        CHECK(flows.assembly.left() == flows.store.entered());
        CHECK(flows.workers.present() + flows.reward.present() + flows.assembly.present() + flows.store.present() ==
              static_cast<std::int64_t>(pipeline.living_rollouts()));
        CHECK(flows.workers.left() == end.generated);
        CHECK(flows.store.entered() == end.stored);

        std::int64_t worker_ns = 0;
        std::int64_t trainer_ns = 0;
        for (const std::int64_t ns : end.worker_ns) {
            CHECK(ns >= 0);
            worker_ns += ns;
        }
        for (const std::int64_t ns : end.trainer_ns) {
            CHECK(ns >= 0);
            trainer_ns += ns;
        }
        CHECK(worker_ns == sample.config.workers.count * end.at.ns);
        CHECK(trainer_ns == sample.config.trainers.count * end.at.ns);
        CHECK(end.samples == updates * sample.config.trainers.batch);
    }
}

TEST_CASE("a transfer queue without drops uses every rollout once") {
    for (const NamedPipeline& sample : sample_pipelines()) {
        const auto* queue = std::get_if<TransferQueueConfig>(&sample.config.store);
        if (queue == nullptr || queue->overflow == Overflow::drop_oldest) {
            continue;
        }
        INFO(sample.name);
        Pipeline pipeline(sample.config, 3, 0);
        pipeline.run(200);
        const std::int64_t in_store = pipeline.flows().store.present();
        const ReplicationRecord record = pipeline.take_record();
        CHECK(record.updates.back().new_samples == record.updates.back().samples);
        CHECK(record.updates.back().dropped == 0);
        CHECK(record.updates.back().samples + in_store == record.updates.back().stored);
        CHECK(record.replay_count.quantile(1.0) == 1);
    }
}

TEST_CASE("synchronous on-policy training is never stale and one step off is stale by one") {
    PipelineConfig config = first_order_pipeline(5.28, 6, 2);
    config.store = TransferQueueConfig{.capacity = 120};
    config.admission = AdmissionConfig{.steps_ahead = 0, .rollouts_per_update = 60};
    Pipeline on_policy(config, 1, 0);
    on_policy.run(100);
    const ReplicationRecord synchronous = on_policy.take_record();
    CHECK(synchronous.updates.back().staleness == 0);
    // Generating and training take turns: nothing overlaps.
    const auto& end = synchronous.updates.back();
    CHECK(end.worker_ns[static_cast<std::size_t>(WorkerState::busy)] < 6 * end.at.ns);
    CHECK(end.trainer_ns[static_cast<std::size_t>(TrainerState::waiting)] > 0);

    // Batches taken in starting order wait for their stragglers, so K steps ahead is never more than K stale.
    for (const std::int64_t steps_ahead : {1, 2, 5}) {
        PipelineConfig ahead = config;
        ahead.admission->steps_ahead = steps_ahead;
        ahead.store = TransferQueueConfig{.capacity = 60 * (steps_ahead + 1), .order = QueueOrder::as_started};
        Pipeline off_policy(ahead, 1, 0);
        off_policy.run(100);
        const ReplicationRecord record = off_policy.take_record();
        CHECK(record.staleness.quantile(1.0) == steps_ahead);
        CHECK(record.updates.back().at < end.at);
        if (steps_ahead == 1) {
            // Nearly every sample after the first batch; a few had to wait for a free slot until the version moved on.
            CHECK(record.staleness.counts()[1] > 98 * 60);
        }
    }
    // In order of completion a straggler misses its batch: typically one step off, sometimes more.
    config.admission->steps_ahead = 1;
    Pipeline by_completion(config, 1, 0);
    by_completion.run(100);
    const ReplicationRecord completed = by_completion.take_record();
    CHECK(completed.staleness.mean() == doctest::Approx(1.0).epsilon(0.05));
    CHECK(completed.staleness.quantile(1.0) > 1);

    config.weight_sync.transfer_s = Distribution::constant(3.0);
    config.admission->steps_ahead = 0;
    Pipeline slow_sync(config, 1, 0);
    slow_sync.run(100);
    CHECK(slow_sync.take_record().updates.back().staleness == 0);
}

TEST_CASE("rollouts span versions when weights change in place, and workers pause for the transfer") {
    PipelineConfig config = first_order_pipeline(5.28, 5, 3);
    config.weight_sync = {.transfer_s = Distribution::constant(2.0), .in_flight = InFlight::in_place};
    Pipeline pipeline(config, 1, 0);
    pipeline.run(300);
    const ReplicationRecord record = pipeline.take_record();
    const auto& end = record.updates.back();
    // One transfer of 2 s in every update of 20 s.
    const double paused = static_cast<double>(end.worker_ns[static_cast<std::size_t>(WorkerState::paused)]) /
                          (5.0 * static_cast<double>(end.at.ns));
    CHECK(paused == doctest::Approx(0.1).epsilon(0.01));

    // Pausing slows generation by as much and raises the effective mu: this is what the first-order formula misses.
    config.weight_sync.transfer_s = Distribution::constant(0.0);
    Pipeline fast(config, 1, 0);
    fast.run(300);
    const double ratio =
        static_cast<double>(fast.take_record().updates.back().generated) / static_cast<double>(end.generated);
    CHECK(ratio == doctest::Approx(1.0 / 0.9).epsilon(0.02));
}

TEST_CASE("trainers that wait for the transfer stall for as long") {
    PipelineConfig config = first_order_pipeline(5.28, 5, 3);
    config.weight_sync = {.every = 2, .transfer_s = Distribution::constant(5.0), .trainers_wait = true};
    Pipeline pipeline(config, 1, 0);
    pipeline.run(200);
    const UpdateRecord end = pipeline.take_record().updates.back();
    const double updates_s = 200 * 20.0;
    CHECK(seconds(Duration{end.trainer_ns[static_cast<std::size_t>(TrainerState::busy)]}) ==
          doctest::Approx(3 * updates_s));
    CHECK(seconds(Duration{end.trainer_ns[static_cast<std::size_t>(TrainerState::stalled)]}) ==
          doctest::Approx(3 * 99 * 5.0));
}

TEST_CASE("a queue that blocks holds the workers to the trainers' pace") {
    PipelineConfig config = first_order_pipeline(1.0, 6, 1);
    config.store = TransferQueueConfig{.capacity = 64};
    Pipeline pipeline(config, 1, 0);
    pipeline.run(300);
    const UpdateRecord end = pipeline.take_record().updates.back();
    const auto trainer = [&](TrainerState s) { return end.trainer_ns[static_cast<std::size_t>(s)]; };
    const auto worker = [&](WorkerState s) { return end.worker_ns[static_cast<std::size_t>(s)]; };
    CHECK(static_cast<double>(trainer(TrainerState::busy)) > 0.99 * static_cast<double>(end.at.ns));
    // Rollouts worth 60 GPU-seconds per update of 60 s are wanted from six workers.
    CHECK(static_cast<double>(worker(WorkerState::busy)) / (6.0 * static_cast<double>(end.at.ns)) < 0.5);
    CHECK(worker(WorkerState::blocked) > worker(WorkerState::starved));
}

TEST_CASE("draws are keyed by their purpose: more workers leave the trainers' times and the rollouts alone") {
    PipelineConfig config = first_order_pipeline(5.28, 5, 3);
    config.trainers.service = FixedTrainerService{Distribution::lognormal(60.0, 0.3)};
    Pipeline five(config, 1, 0);
    config.workers.count = 7;
    Pipeline seven(config, 1, 0);
    five.run(50);
    seven.run(50);
    const auto busy = [](const ReplicationRecord& r) {
        return r.updates.back().trainer_ns[static_cast<std::size_t>(TrainerState::busy)];
    };
    CHECK(busy(five.take_record()) == busy(seven.take_record()));
}

TEST_CASE("the steady state of every kind of pipeline allocates nothing") {
    for (const NamedPipeline& sample : sample_pipelines()) {
        INFO(sample.name);
        // The longer run allocates its longer record in one piece, and now and then a larger ring or histogram.
        const auto allocated = [&](std::int64_t updates) {
            const std::uint64_t before = allocations();
            Pipeline pipeline(sample.config, 3, 0);
            pipeline.run(updates);
            return allocations() - before;
        };
        const std::uint64_t settled = allocated(300);
        const std::uint64_t longer = allocated(1500);
        CHECK(longer - settled < 40);  // of some 100,000 events
    }
}

TEST_CASE("a deadlock is named, with what waits for what") {
    // 60 tokens let three groups of 16 be complete and 12 rollouts of a fourth start: 48 < 60, for ever.
    PipelineConfig config = first_order_pipeline(5.28, 6, 2);
    config.groups.size = 16;
    config.store = TransferQueueConfig{.capacity = 128};
    config.admission = AdmissionConfig{.steps_ahead = 0, .rollouts_per_update = 60};
    config.weight_sync.every = 1;
    Pipeline pipeline(config, 1, 0);
    try {
        // The bucket opens wide enough for the first batch in whole groups; the tokens run dry some updates later.
        pipeline.run(1000);
        FAIL("should have been stuck");
    } catch (const PipelineStuck& stuck) {
        const std::string what = stuck.what();
        INFO(what);
        CHECK(what.find("deadlock") != std::string::npos);
        CHECK(what.find("Admission") != std::string::npos);
        CHECK(what.find("groups of 16") != std::string::npos);
    }
}

TEST_CASE("a batch that never fills is reported, not waited for") {
    // Nothing is ever correct, so the share for correct rollouts stays empty: 40 of 84 places are all there is.
    PipelineConfig config = first_order_pipeline(5.28, 5, 3);
    config.store = ReplayBufferConfig{
        .capacity = 84, .sampling = Sampling::uniform_without_replacement, .positive_bias_delta = 0.5};
    config.reward = RewardConfig{Distribution::constant(0.0), std::nullopt, 0.0};
    Pipeline pipeline(config, 1, 0);
    CHECK_THROWS_WITH_AS(pipeline.run(10), doctest::Contains("can never fill"), PipelineStuck);
}

TEST_CASE("a full queue with no room for a group is a deadlock") {
    PipelineConfig config = first_order_pipeline(5.28, 5, 3);
    config.groups.size = 8;
    config.store = TransferQueueConfig{.capacity = 63};  // seven groups are 56 < 60, an eighth does not fit
    Pipeline pipeline(config, 1, 0);
    CHECK_THROWS_WITH_AS(pipeline.run(10), doctest::Contains("store.capacity"), PipelineStuck);
}

TEST_CASE("a pipeline whose rollouts take no time is reported, not simulated for ever") {
    PipelineConfig config = first_order_pipeline(5.28, 2, 1);
    config.workers.service = StepService{1e-13, 0.0, 0.0, 0.0, std::nullopt};
    config.workers.length = Distribution::constant(100.0);
    Pipeline pipeline(config, 1, 0);
    CHECK_THROWS_WITH_AS(pipeline.run(10), doctest::Contains("time stands still"), PipelineStuck);
}

TEST_CASE("a rollout that fits in no worker's memory is named") {
    PipelineConfig config = first_order_pipeline(5.28, 2, 1);
    config.workers.service = StepService{1e-3, 0.0, 0.0, 0.0, 500};
    config.workers.length = Distribution::empirical({100.0, 100.0, 100.0, 900.0});
    Pipeline pipeline(config, 1, 0);
    CHECK_THROWS_WITH_AS(pipeline.run(10), doctest::Contains("kv_cap_tokens"), PipelineStuck);
}
