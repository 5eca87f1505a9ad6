#include "sim/scenario/decode_learner.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/run/replications.h"
#include "sim/scenario/decode.h"
#include "tests/scenario/corpus.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

const fs::path folder = corpus::source_dir / "tests/scenario/corpus";

Scenario good(const std::string& name, const std::vector<std::string>& overrides = {}) {
    return load_scenario((folder / "good" / (name + ".json")).string(), overrides);
}

ScenarioProblem problem_with(const std::string& name, const std::vector<std::string>& overrides) {
    const std::vector<ScenarioProblem> problems = corpus::problems_of([&] { good(name, overrides); });
    REQUIRE(problems.size() == 1);
    return problems.front();
}

TEST_CASE("every key of a scenario's learner arrives where it belongs") {
    const Scenario scenario = good("learner_everything");
    CHECK(scenario.horizon.updates == 200);
    CHECK(scenario.horizon.warmup_updates == 20);
    CHECK(scenario.horizon.units == 112.5);
    REQUIRE(scenario.learner);
    const LearnerSettings& learner = *scenario.learner;
    CHECK(learner.task.kind == TaskKind::sort);
    CHECK(learner.task.size == 6);
    CHECK(learner.model.width == 16);
    CHECK(learner.model.context == 14);
    CHECK(learner.warm_start.seed == 2);
    CHECK(learner.warm_start.optimizer.learning_rate == 0.001);
    CHECK(learner.objective.ratio == RatioLevel::sequence);
    CHECK(learner.objective.clip_high == 0.28);
    CHECK(learner.optimizer.learning_rate == 0.0004);
    CHECK(learner.evaluation.every_units == 12.5);
    CHECK(learner.evaluation.sampled_prompts == 8);
    CHECK(learner.evaluation.samples == 32);
    CHECK(learner.evaluation.greedy_prompts == 16);
    CHECK(learner.replicas == 3);
    CHECK(learner.target_pass_at_1 == 0.75);
}

TEST_CASE("what a scenario leaves out of its learner has the default of the settings") {
    const Scenario scenario = good("learner_minimal");
    const LearnerSettings expected;
    REQUIRE(scenario.learner);
    CHECK(scenario.learner->replicas == expected.replicas);
    CHECK(scenario.learner->target_pass_at_1 == expected.target_pass_at_1);
    CHECK(scenario.learner->evaluation.every_units == expected.evaluation.every_units);
    CHECK(scenario.learner->evaluation.samples == expected.evaluation.samples);
    CHECK(scenario.learner->model.width == expected.model.width);
    CHECK(scenario.learner->warm_start.updates == expected.warm_start.updates);
    CHECK(scenario.learner->objective.clip_high == expected.objective.clip_high);
    CHECK(scenario.learner->optimizer.learning_rate == expected.optimizer.learning_rate);
    CHECK_FALSE(scenario.horizon.units);
    CHECK_FALSE(good("minimal").learner);
    CHECK(good("minimal").resolved_json.find("learner") == std::string::npos);
}

TEST_CASE("a probability of being correct is at odds with a learner only when it is stated") {
    const Scenario plain = good("reward_unlimited");
    CHECK(plain.pipeline.reward->correct_probability == 0.5);
    CHECK(plain.resolved_json.find("\"correct_probability\":0.5") != std::string::npos);
    const Scenario learning = good("learner_reward");
    CHECK(learning.pipeline.reward->latency_s.mean() == 2.0);
    CHECK(learning.resolved_json.find("correct_probability") == std::string::npos);
    // Even the default, once somebody wrote it.
    const ScenarioProblem stated = problem_with("learner_reward", {"reward.correct_probability=0.5"});
    CHECK(stated.key == "reward.correct_probability");
    CHECK(stated.message == "the learner decides which rollouts are correct");
    CHECK(stated.source == "--set reward.correct_probability=0.5");
}

TEST_CASE("replicas share a timeline only where it does not depend on rewards") {
    CHECK(good("learner_reward").learner->replicas == 1);
    CHECK(problem_with("learner_reward", {"learner.replicas=2"}).key == "store.eviction");
    CHECK(good("learner_reward", {"learner.replicas=2", "store.eviction.delta=0"}).learner->replicas == 2);
    CHECK(good("learner_reward", {"learner.replicas=2", R"(store.eviction={"kind": "fifo"})"}).learner->replicas == 2);
}

TEST_CASE("a learner needs groups, and compute as an end needs a learner") {
    CHECK(problem_with("learner_minimal", {"groups.size=1"}).key == "groups.size");
    CHECK(good("learner_minimal", {"groups.size=2"}).pipeline.groups.size == 2);
    CHECK(good("learner_minimal", {"horizon.units=6000"}).horizon.units == 6000.0);
    CHECK(problem_with("minimal", {"horizon.units=6000"}).key == "horizon.units");
}

TEST_CASE("overrides of a scenario's learner") {
    CHECK(good("learner_minimal", {"learner.objective.clip=none"}).learner->objective.clip_high > 1e9);
    CHECK(good("learner_minimal", {"learner.objective.kind=asymre"}).learner->objective.algorithm == Algorithm::asymre);
    CHECK(good("learner_minimal", {"learner.evaluation.every_units=60"}).learner->evaluation.every_units == 60.0);
    CHECK(good("minimal", {"learner.task.kind=sort", "learner.task.digits=4"}).learner->task.size == 4);
    const ScenarioProblem updates = problem_with("learner_minimal", {"learner.evaluation.every_updates=50"});
    CHECK(updates.suggestion == "every_units");
    CHECK(updates.hint == R"(did you mean "every_units"?)");
    CHECK(problem_with("learner_minimal", {"learner.model.context=9"}).message.find("at least 10") !=
          std::string::npos);
}

Scenario shipped(const std::string& name) {
    return load_scenario((corpus::source_dir / "scenarios/learn" / (name + ".json")).string(), {});
}

/// What the two shipped pipelines are to differ in is the buffer, the trainers that it keeps busy, and the horizon.
TEST_CASE("the shipped pipelines with a learner have the same learner and the same costs, with mu = 5") {
    const Scenario baseline = shipped("baseline");
    const Scenario buffer = shipped("buffer-2048");
    for (const Scenario* scenario : {&baseline, &buffer}) {
        const PipelineConfig& pipeline = scenario->pipeline;
        const double rollout = std::get<FirstOrderService>(pipeline.workers.service).gpu_s_per_rollout.mean();
        const double update = std::get<FixedTrainerService>(pipeline.trainers.service).gpu_s_per_update.mean();
        CHECK(update == 1.0);
        CHECK(static_cast<double>(pipeline.trainers.batch) * rollout == 5.0);
        CHECK(scenario->horizon.units == 6000.0);
    }
    const auto learner_of = [](const Scenario& scenario) {
        return nlohmann::json::parse(scenario.resolved_json).at("learner");
    };
    CHECK(learner_of(baseline) == learner_of(buffer));
}

TEST_CASE("on the shipped timelines a rollout is used once at staleness 1, or four times over the span of the buffer") {
    // Without anybody to make a learner, a run is one of timing only.
    const auto timed = [](const std::string& name) { return run_replications(shipped(name), {}).metrics; };
    const auto baseline = timed("baseline");
    CHECK(baseline.at("replay/mean").mean == doctest::Approx(1.0));
    CHECK(baseline.at("staleness/mean").mean == doctest::Approx(1.0));
    CHECK(baseline.at("compute/active_gpu_s_per_update").mean == doctest::Approx(6.0));
    // 16 new rollouts per update: the 2048 places span 128 updates, and those in them are 1 to 128 updates old.
    const auto buffer = timed("buffer-2048");
    CHECK(buffer.at("replay/mean").mean == doctest::Approx(4.0).epsilon(0.01));
    CHECK(buffer.at("staleness/in_store").mean == doctest::Approx(64.5).epsilon(0.02));
    CHECK(buffer.at("staleness/pre_store").mean < 1.0);
    CHECK(buffer.at("compute/active_gpu_s_per_update").mean == doctest::Approx(2.25).epsilon(0.01));
}

}  // namespace
}  // namespace millrace
