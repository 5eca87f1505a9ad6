// What the graph of a pipeline says about its period, against the simulation of that pipeline.
#include "sim/explain/pipeline_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/pipeline/admission.h"
#include "sim/pipeline/pipeline.h"
#include "sim/run/replications.h"
#include "tests/pipeline/sample_pipelines.h"

using namespace millrace;

namespace {

class Dice {
   public:
    explicit Dice(std::uint64_t seed) : draw_(RandomStream(seed, 0, Purpose::rollout_tokens), 0) {}
    std::int64_t whole(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(draw_.below(static_cast<std::uint64_t>(high - low + 1)));
    }
    bool chance(double p) { return draw_.uniform() < p; }

   private:
    Draw draw_;
};

constexpr double step_s = 0.25;

Distribution steps(std::int64_t count) {
    return Distribution::constant(step_s * static_cast<double>(count));
}

/// A pipeline with constant times, all of them whole numbers of steps. Some are impossible, some only bounded by their
/// graph.
PipelineConfig random_constant_pipeline(Dice& dice) {
    PipelineConfig config;
    config.workers.count = dice.whole(1, 6);
    config.groups.size = dice.chance(0.5) ? 1 : dice.whole(2, 5);
    config.trainers.count = dice.whole(1, 3);
    config.trainers.batch = dice.whole(1, 24);
    if (dice.chance(0.6)) {
        config.trainers.batch =
            (config.trainers.batch + config.groups.size - 1) / config.groups.size * config.groups.size;
    }
    if (dice.chance(0.3)) {
        config.workers.slots = 1;
        config.workers.service = FirstOrderService{steps(dice.whole(1, 60))};
        if (dice.chance(0.5)) {
            config.workers.service = StepService{{0.25, 0.125, 0.0078125, 0.0625}, std::nullopt};
            config.workers.length = Distribution::constant(static_cast<double>(dice.whole(1, 40)));
            config.workers.prompt_length = Distribution::constant(static_cast<double>(dice.whole(0, 10)));
        }
    } else {
        config.workers.slots = dice.whole(2, 6);
        const std::int64_t tokens = dice.whole(1, 60);
        const std::int64_t room = dice.whole(1, 5);
        config.workers.service = StepService{
            {step_s, 0.0, 0.0, 0.0}, dice.chance(0.2) ? std::optional(room * tokens + tokens / 2) : std::nullopt};
        config.workers.length = Distribution::constant(static_cast<double>(tokens));
    }
    config.trainers.service = FixedTrainerService{steps(config.trainers.count * dice.whole(1, 40))};
    if (dice.chance(0.4)) {
        config.reward = RewardConfig{steps(dice.whole(0, 20)), std::nullopt, 0.5};
        if (dice.chance(0.5)) {
            config.reward->servers = dice.whole(1, 8);
        }
    }
    config.weight_sync.every = dice.chance(0.5) ? 1 : dice.whole(2, 4);
    if (dice.chance(0.7)) {
        config.weight_sync.transfer_s = steps(dice.whole(0, 20));
    }
    config.weight_sync.trainers_wait = dice.chance(0.4);
    config.weight_sync.in_flight = dice.chance(0.3) ? InFlight::in_place : InFlight::between_rollouts;
    if (dice.chance(0.75)) {
        config.admission = AdmissionConfig{dice.whole(0, 3), config.trainers.batch};
    }
    if (dice.chance(0.15)) {
        const std::int64_t fresh = std::max<std::int64_t>(1, config.trainers.batch / 2);
        config.store = ReplayBufferConfig{.capacity = config.trainers.batch + dice.whole(0, 20)};
        if (dice.chance(0.7)) {
            config.trainers.fresh_per_update = fresh * config.groups.size;
            config.admission = AdmissionConfig{0, fresh * config.groups.size};
        } else {
            config.admission.reset();
        }
        return config;
    }
    TransferQueueConfig queue;
    queue.capacity = config.trainers.batch + dice.whole(0, 3 * config.trainers.batch);
    queue.order = dice.chance(0.3) ? QueueOrder::lifo : QueueOrder::fifo;
    if (config.admission && dice.chance(0.5)) {
        queue.capacity = opening_tokens(*config.admission, first_batch(config));
        queue.order = dice.chance(0.5) ? QueueOrder::as_started : queue.order;
    }
    config.store = queue;
    return config;
}

std::string describe(const PipelineConfig& config) {
    const auto text = [](const char* what, auto value) { return what + std::to_string(value) + " "; };
    std::string all =
        text("W ", config.workers.count) + text("S ", config.workers.slots) + text("G ", config.groups.size) +
        text("B ", config.trainers.batch) + text("fresh ", config.trainers.fresh_per_update) +
        text("N ", capacity(config.store)) + text("every ", config.weight_sync.every) +
        text("transfer ", config.weight_sync.transfer_s.mean()) +
        text("trainers_wait ", config.weight_sync.trainers_wait) +
        text("in_place ", config.weight_sync.in_flight == InFlight::in_place) +
        text("tokens ", config.workers.length.mean()) +
        text("update_gpu_s ", std::get<FixedTrainerService>(config.trainers.service).gpu_s_per_update.mean()) +
        text("T ", config.trainers.count);
    if (const auto* queue = std::get_if<TransferQueueConfig>(&config.store)) {
        all += text("queue order ", static_cast<int>(queue->order));
    }
    if (const auto* first_order = std::get_if<FirstOrderService>(&config.workers.service)) {
        all += text("gpu_s ", first_order->gpu_s_per_rollout.mean());
    } else if (const auto cap = std::get<StepService>(config.workers.service).kv_cap_tokens) {
        all += text("memory ", *cap);
    }
    if (config.admission) {
        all += text("steps_ahead ", config.admission->steps_ahead);
    }
    if (config.reward) {
        all += text("grading ", config.reward->latency_s.mean()) + text("servers ", config.reward->servers.value_or(0));
    }
    return all;
}

std::vector<std::int64_t> update_times_ns(const PipelineConfig& config, std::int64_t updates) {
    Pipeline pipeline(config, 1, 0);
    REQUIRE(pipeline.run(updates));
    std::vector<std::int64_t> times;
    for (const UpdateRecord& update : pipeline.take_record().updates) {
        times.push_back(update.at.ns);
    }
    return times;
}

/// Constant times repeat in the end: `cycle` updates later everything is the same, so much later in time. The exact
/// period in seconds per update; none if the second half of the run has no cycle of up to 100 updates.
std::optional<double> repeating_period_s(const std::vector<std::int64_t>& at) {
    const std::size_t half = at.size() / 2;
    for (std::size_t cycle = 1; cycle <= 100; ++cycle) {
        const std::int64_t takes = at[half + cycle] - at[half];
        bool repeats = true;
        for (std::size_t u = half; repeats && u + cycle < at.size(); ++u) {
            repeats = at[u + cycle] - at[u] == takes;
        }
        if (repeats) {
            return 1e-9 * static_cast<double>(takes) / static_cast<double>(cycle);
        }
    }
    return std::nullopt;
}

double period_s(const PipelineGraph& pipeline) {
    return limiting_cycle(pipeline.graph, pipeline.update)->ratio_s() / static_cast<double>(pipeline.updates);
}

Scenario scenario_of(const PipelineConfig& config, std::int64_t updates, std::int64_t replications) {
    Scenario scenario;
    scenario.name = "test";
    scenario.pipeline = config;
    scenario.replications = replications;
    scenario.horizon.updates = updates;
    scenario.horizon.warmup_updates = updates / 5;
    return scenario;
}

/// The pipeline of the max-plus notes: N rollouts of 10 s, grading 0.5 s, update 8 s, synchronisation 1 s.
PipelineConfig noted_pipeline(std::int64_t batch, std::int64_t slots, std::int64_t steps_ahead, double rollout_s,
                              double grading_s, double update_s, double transfer_s) {
    PipelineConfig config;
    config.workers.count = slots;
    config.workers.service = FirstOrderService{Distribution::constant(rollout_s)};
    config.reward = RewardConfig{Distribution::constant(grading_s), std::nullopt, 0.5};
    config.trainers.batch = batch;
    config.trainers.service = FixedTrainerService{Distribution::constant(update_s)};
    config.weight_sync.transfer_s = Distribution::constant(transfer_s);
    config.weight_sync.trainers_wait = true;
    config.store = TransferQueueConfig{.capacity = (steps_ahead + 1) * batch};
    config.admission = AdmissionConfig{steps_ahead, batch};
    return config;
}

}  // namespace

TEST_CASE("the period of 600 random pipelines with constant times is exactly their cycle ratio") {
    Dice dice(5);
    std::map<std::string, int> exact;
    std::map<std::string, int> bounded;
    int deadlocked = 0;
    int compared = 0;
    int largest_cycle_mixed = 0;
    for (int p = 0; p < 2000 && compared < 600; ++p) {
        const PipelineConfig config = random_constant_pipeline(dice);
        const PipelineGraph pipeline = rollout_graph(config);
        CAPTURE(describe(config));
        if (!deadlocks(pipeline.graph).empty()) {
            ++deadlocked;
            if (pipeline.exact()) {
                CHECK_THROWS_AS(Pipeline(config, 1, 0).run(200), PipelineStuck);
            }
            continue;
        }
        const double expected = period_s(pipeline);
        if (!pipeline.exact()) {
            ++bounded[pipeline.approximations.front()];
            try {
                const auto at = update_times_ns(config, 400);
                const double simulated = 1e-9 * static_cast<double>(at[399] - at[99]) / 300.0;
                CHECK(simulated >= expected * (1.0 - 0.01));
            } catch (const PipelineStuck&) {
            }
            continue;
        }
        const auto simulated = repeating_period_s(update_times_ns(config, 800));
        REQUIRE(simulated.has_value());
        CHECK(*simulated == doctest::Approx(expected).epsilon(1e-9));
        ++compared;
        const auto* queue = std::get_if<TransferQueueConfig>(&config.store);
        ++exact[queue == nullptr                   ? "buffer"
                : queue->order == QueueOrder::fifo ? "fifo"
                : queue->order == QueueOrder::lifo ? "lifo"
                                                   : "as started"];
        ++exact[config.admission ? "admission" : "no admission"];
        ++exact[config.groups.size > 1 ? "groups" : "no groups"];
        ++exact[config.weight_sync.every > 1 ? "every k updates" : "every update"];
        const auto cycle = limiting_cycle(pipeline.graph, pipeline.update);
        std::vector<bool> kinds(pipeline.graph.activities.size());
        for (const std::size_t edge : cycle->edges) {
            kinds[pipeline.graph.edges[edge].activity] = true;
        }
        largest_cycle_mixed += kinds[activity::generation] && kinds[activity::update] ? 1 : 0;
        CHECK(period_s(batch_graph(config)) <= expected * (1.0 + 1e-9));
    }
    std::string counts;
    for (const auto& [what, count] : exact) {
        counts += what + " " + std::to_string(count) + ", ";
    }
    for (const auto& [what, count] : bounded) {
        counts += "\n  bound: " + what + " " + std::to_string(count);
    }
    MESSAGE("exact: " << counts << "; deadlocked " << deadlocked << ", mixed cycles " << largest_cycle_mixed);
    CHECK(compared == 600);
    CHECK(largest_cycle_mixed > 100);
    for (const char* kind :
         {"buffer", "fifo", "lifo", "as started", "admission", "no admission", "groups", "every k updates"}) {
        CHECK(exact[kind] > 20);
    }
}

TEST_CASE("the periods of the max-plus notes, where the three elementary terms are too optimistic") {
    struct Row {
        std::int64_t batch, slots, steps_ahead;
        double rollout_s, grading_s, update_s, transfer_s, period;
    };
    for (const Row& row :
         {Row{64, 16, 0, 10, 0.5, 8, 1, 49.5}, Row{64, 16, 1, 10, 0.5, 8, 1, 40.0}, Row{64, 64, 1, 10, 0.5, 8, 1, 10.0},
          Row{64, 128, 3, 10, 0.5, 8, 1, 9.0}, Row{512, 256, 2, 30, 1, 20, 3, 60.0}}) {
        const PipelineConfig config = noted_pipeline(row.batch, row.slots, row.steps_ahead, row.rollout_s,
                                                     row.grading_s, row.update_s, row.transfer_s);
        const PipelineGraph pipeline = rollout_graph(config);
        CHECK(pipeline.exact());
        CHECK(period_s(pipeline) == doctest::Approx(row.period).epsilon(1e-12));
        CHECK(repeating_period_s(update_times_ns(config, 300)).value() == doctest::Approx(row.period).epsilon(1e-9));
    }
}

TEST_CASE("a little spread beats whole rounds: only the graph of batches bounds every law") {
    // 65 rollouts on 16 slots take five rounds of 10 s if each takes exactly that, and work for 40.6 s in any case.
    PipelineConfig config = noted_pipeline(65, 16, 0, 10.0, 0.5, 8.0, 1.0);
    CHECK(period_s(rollout_graph(config)) == doctest::Approx(59.5));
    CHECK(period_s(batch_graph(config)) == doctest::Approx(65.0 * 10.0 / 16.0 + 9.5));
    config.workers.service = FirstOrderService{Distribution::uniform(8.0, 12.0)};
    CHECK_FALSE(rollout_graph(config).exact());
    const Estimate period =
        run_replications(scenario_of(config, 300, 5), {.jobs = 1}).metrics.at("time/update_period_s");
    CHECK(period.mean + *period.half_width < 59.0);
    CHECK(period.mean > 65.0 * 10.0 / 16.0 + 9.5);
}

TEST_CASE("no law with the same means makes a pipeline faster than its graph of batches") {
    Dice dice(11);
    int runs = 0;
    int below_rollout_graph = 0;
    double nearest = 1e9;
    for (int p = 0; p < 120; ++p) {
        PipelineConfig config = random_constant_pipeline(dice);
        if (p % 3 == 0) {
            config.workers.slots = dice.whole(1, 8);
            config.workers.service = FirstOrderService{Distribution::constant(3.0)};
        } else if (p % 3 == 1) {
            config.workers.service = StepService{{0.02, 0.005, 2e-5, 1e-3}, std::nullopt};
            config.workers.prompt_length = Distribution::constant(20.0);
        }
        const bool heavy = dice.chance(0.5);
        const auto spread = [&](const Distribution& law) {
            if (law.mean() == 0.0) {
                return law;
            }
            return heavy ? Distribution::lognormal(law.mean(), 0.2 + 0.2 * static_cast<double>(dice.whole(0, 4)))
                         : Distribution::exponential(law.mean());
        };
        if (auto* first_order = std::get_if<FirstOrderService>(&config.workers.service)) {
            first_order->gpu_s_per_rollout = spread(first_order->gpu_s_per_rollout);
        } else {
            // Drawn lengths are rounded: laws of whole numbers keep the mean what it says.
            auto& step = std::get<StepService>(config.workers.service);
            step.kv_cap_tokens.reset();
            config.workers.length = heavy ? Distribution::empirical({10.0, 20.0, 30.0, 140.0})
                                          : Distribution::empirical({30.0, 40.0, 50.0});
        }
        auto& trainer = std::get<FixedTrainerService>(config.trainers.service);
        trainer.gpu_s_per_update = spread(trainer.gpu_s_per_update);
        config.weight_sync.transfer_s = spread(config.weight_sync.transfer_s);
        if (config.reward) {
            config.reward->latency_s = spread(config.reward->latency_s);
        }
        const PipelineGraph floor = batch_graph(config);
        if (!deadlocks(floor.graph).empty()) {
            continue;
        }
        Estimate period;
        try {
            period = run_replications(scenario_of(config, 250, 6), {.jobs = 1}).metrics.at("time/update_period_s");
        } catch (const PipelineStuck&) {
            continue;  // e.g. a queue that is too small for groups
        }
        CAPTURE(describe(config));
        ++runs;
        // Where the floor is tight, one 95 % interval in forty lies below it by chance; twice the width does not.
        CHECK(period.mean + 2.0 * *period.half_width >= period_s(floor));
        nearest = std::min(nearest, period.mean / period_s(floor));
        below_rollout_graph += period.mean + *period.half_width < period_s(rollout_graph(config)) ? 1 : 0;
    }
    MESSAGE(runs << " runs, smallest ratio " << nearest << ", below the graph of rollouts " << below_rollout_graph);
    CHECK(runs > 80);
}

TEST_CASE("every kind of pipeline has both graphs, and neither contradicts the simulation") {
    for (const auto& [name, config] : millrace_test::sample_pipelines()) {
        CAPTURE(name);
        const PipelineGraph floor = batch_graph(config);
        REQUIRE(deadlocks(floor.graph).empty());
        const Estimate period =
            run_replications(scenario_of(config, 200, 4), {.jobs = 1}).metrics.at("time/update_period_s");
        CHECK(period.mean + 2.0 * *period.half_width >= period_s(floor));
        CHECK(period_s(rollout_graph(config)) >= period_s(floor) * (1.0 - 1e-9));
    }
}

TEST_CASE("a deadlock is seen in the graph, with what waits for what") {
    // 60 tokens let three groups of 16 be complete and 12 rollouts of a fourth start: 48 < 60, for ever.
    PipelineConfig config = millrace_test::first_order_pipeline(5.28, 6, 2);
    config.groups.size = 16;
    config.store = TransferQueueConfig{.capacity = 128};
    config.admission = AdmissionConfig{.steps_ahead = 0, .rollouts_per_update = 60};
    for (const PipelineGraph& pipeline : {rollout_graph(config), batch_graph(config)}) {
        const auto stuck = deadlocks(pipeline.graph);
        REQUIRE_FALSE(stuck.empty());
        const std::string text = describe_deadlock(pipeline.graph, stuck.front());
        CAPTURE(text);
        CHECK(text.find("update") != std::string::npos);
        CHECK_THROWS_AS(maximum_cycle_ratio(pipeline.graph), std::domain_error);
    }
    config.admission->steps_ahead = 1;
    CHECK(deadlocks(rollout_graph(config).graph).empty());

    config = millrace_test::first_order_pipeline(5.28, 5, 3);
    config.groups.size = 8;
    config.store = TransferQueueConfig{.capacity = 63};  // seven groups are 56 < 60, an eighth does not fit
    const auto full = deadlocks(rollout_graph(config).graph);
    REQUIRE_FALSE(full.empty());
    CHECK(describe_deadlock(rollout_graph(config).graph, full.front()).find("in store") != std::string::npos);
}

TEST_CASE("a replay buffer leaves trainers and workers to themselves") {
    PipelineConfig config = millrace_test::first_order_pipeline(5.28, 5, 3);
    const PipelineGraph pipeline = rollout_graph(config);
    CHECK_FALSE(pipeline.trainers_wait_for_rollouts);
    CHECK(period_s(pipeline) == doctest::Approx(20.0));
    // 60 rollouts of 5.28 GPU-seconds on five workers.
    CHECK(limiting_cycle(pipeline.graph, pipeline.generation)->ratio_s() == doctest::Approx(63.36));
}

TEST_CASE("counts that never repeat together are refused, not run out of memory") {
    PipelineConfig config = millrace_test::first_order_pipeline(5.28, 5, 3);
    config.store = TransferQueueConfig{.capacity = 64};
    config.weight_sync.transfer_s = Distribution::constant(1.0);
    config.trainers.batch = 1999;
    config.store = TransferQueueConfig{.capacity = 8000};
    config.weight_sync.every = 999;
    CHECK_THROWS_AS(rollout_graph(config), std::length_error);
    CHECK(batch_graph(config).updates == 999 * 4);
    config.weight_sync.every = 1'000'003;
    CHECK_FALSE(rollout_graph(config).exact());
    CHECK(period_s(rollout_graph(config)) == doctest::Approx(1999 * 5.28 / 5));
    config.groups.size = 1'000'003;
    CHECK_THROWS_AS(batch_graph(config), std::length_error);
}
