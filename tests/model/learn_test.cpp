#include "model/learn.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <stdexcept>

#include "model/warm_start.h"
#include "tests/model/small_model.h"

using namespace millrace;
using namespace millrace::test;

namespace {

LearnSettings small_run(std::int64_t updates, std::vector<std::uint64_t> seeds) {
    LearnSettings settings;
    settings.learner = small_settings();
    settings.updates = updates;
    settings.batch = 32;
    settings.group_size = 8;
    settings.seeds = std::move(seeds);
    return settings;
}

std::string path_of(const std::string& name) {
    return (std::filesystem::temp_directory_path() / ("millrace_learn_test_" + name)).string();
}

struct Run {
    LearnResult result;
    std::vector<LearnReport> reports;
};

Run run(const LearnSettings& settings, int threads = 1) {
    const auto backend = make_cpu_backend(threads);
    Run run;
    LearnEvents events;
    events.evaluated = [&](const LearnReport& report) { run.reports.push_back(report); };
    run.result = learn(*backend, settings, events);
    return run;
}

}  // namespace

TEST_CASE("supervised fine-tuning learns, and reinforcement learning goes on from there") {
    LearnSettings settings = small_run(250, {1});
    settings.learner.evaluation.every_updates = 250;
    settings.learner.optimizer.learning_rate = 1e-3;
    const Run learnt = run(settings);
    REQUIRE(learnt.reports.size() == 2);
    const double before = learnt.reports[0].replicas[0].evaluation.pass_at_1;
    const double after = learnt.reports[1].replicas[0].evaluation.pass_at_1;
    MESSAGE("pass@1 " << before << " -> " << after);
    CHECK(before > 0.02);  // an untrained model is right once in 20^4
    CHECK(after > before + 0.15);
    CHECK(learnt.reports[1].replicas[0].reward > learnt.reports[0].replicas[0].reward);
}

TEST_CASE("on policy the importance ratio is exactly 1") {
    const Run learnt = run(small_run(10, {1, 2}));
    REQUIRE(learnt.reports.size() == 3);
    for (std::size_t report = 1; report < 3; ++report) {
        for (const LearnReplicaReport& replica : learnt.reports[report].replicas) {
            CHECK(replica.mean.trained_sequences > 0.0);
            CHECK(replica.mean.mean_abs_ratio_minus_1 == 0.0);
            CHECK(replica.mean.clipped_fraction == 0.0);
            CHECK(replica.mean.ess_sequence == 1.0);
        }
    }
}

TEST_CASE("the same bytes for any number of threads") {
    const Run one = run(small_run(6, {1, 2, 3}), 1);
    for (const int threads : {2, 3}) {
        const Run several = run(small_run(6, {1, 2, 3}), threads);
        CHECK(several.result.final_hash == one.result.final_hash);
        CHECK(several.reports.back().replicas[2].evaluation.pass_at_1 ==
              one.reports.back().replicas[2].evaluation.pass_at_1);
    }
}

TEST_CASE("seeds at once learn what each learns alone") {
    const Run both = run(small_run(10, {5, 9}), 2);
    const Run alone = run(small_run(10, {9}));
    CHECK(both.result.theta_0_hash == alone.result.theta_0_hash);
    REQUIRE(both.reports.size() == alone.reports.size());
    for (std::size_t i = 0; i < alone.reports.size(); ++i) {
        const LearnReplicaReport& a = both.reports[i].replicas[1];
        const LearnReplicaReport& b = alone.reports[i].replicas[0];
        CHECK(a.seed == b.seed);
        CHECK(a.evaluation.pass_at_1 == b.evaluation.pass_at_1);
        CHECK(a.evaluation.entropy == b.evaluation.entropy);
        CHECK(a.mean.gradient_norm == b.mean.gradient_norm);
        CHECK(a.reward == b.reward);
        CHECK(a.generated_tokens == b.generated_tokens);
        CHECK(a.trained_tokens == b.trained_tokens);
    }
}

TEST_CASE("an interrupted and resumed run ends in the same bytes as one that was not") {
    const std::string path = path_of("resume");
    LearnSettings settings = small_run(12, {1, 2});
    const Run whole = run(settings);

    settings.updates = 5;
    settings.checkpoint = path;
    run(settings);
    settings.updates = 12;
    settings.resume = path;
    const Run rest = run(settings, 2);
    CHECK(rest.result.final_hash == whole.result.final_hash);
    CHECK(rest.result.theta_0_hash == whole.result.theta_0_hash);
    CHECK(rest.reports.front().update == 10);
    for (std::size_t s = 0; s < 2; ++s) {
        CHECK(rest.reports.back().replicas[s].generated_tokens == whole.reports.back().replicas[s].generated_tokens);
        CHECK(rest.reports.back().replicas[s].trained_tokens == whole.reports.back().replicas[s].trained_tokens);
    }

    std::filesystem::remove(path);
}

TEST_CASE("a run that cannot be resumed is told why") {
    const std::string path = path_of("refused");
    LearnSettings settings = small_run(5, {1});
    settings.checkpoint = path;
    run(settings);
    settings.resume = path;
    const auto refusal = [](const LearnSettings& changed) -> std::string {
        try {
            run(changed);
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "accepted";
    };
    CHECK(refusal(settings) == "accepted");
    LearnSettings changed = settings;
    changed.updates = 4;
    CHECK(refusal(changed).find("has made 5 updates, more than the 4") != std::string::npos);
    changed = settings;
    changed.learner.optimizer.learning_rate *= 2.0;
    CHECK(refusal(changed).find("from this theta_0, but with other seeds") != std::string::npos);
    changed = settings;
    changed.seeds = {2};
    CHECK(refusal(changed).find("from this theta_0, but with other seeds") != std::string::npos);
    changed = settings;
    ++changed.learner.warm_start.updates;
    CHECK(refusal(changed).find("started from another theta_0") != std::string::npos);
    std::filesystem::remove(path);
}

TEST_CASE("a run stopped before its first update is resumed from the start") {
    const std::string path = path_of("stopped_at_0");
    LearnSettings settings = small_run(5, {1});
    settings.checkpoint = path;
    const auto backend = make_cpu_backend(1);
    const std::atomic<bool> stop = true;
    LearnEvents events;
    events.stop = &stop;
    CHECK(learn(*backend, settings, events).updates == 0);
    settings.resume = path;
    const Run resumed = run(settings);
    settings.resume.reset();
    const Run whole = run(settings);
    CHECK(resumed.result.final_hash == whole.result.final_hash);
    CHECK(resumed.reports.size() == whole.reports.size());
    std::filesystem::remove(path);
}

TEST_CASE("a stop ends the run after the update in progress, with a checkpoint to resume from") {
    const std::string path = path_of("stop");
    LearnSettings settings = small_run(12, {1});
    const Run whole = run(settings);
    settings.checkpoint = path;
    const auto backend = make_cpu_backend(1);
    std::atomic<bool> stop = false;
    LearnEvents events;
    events.stop = &stop;
    events.evaluated = [&](const LearnReport& report) { stop = report.update == 5; };
    const LearnResult stopped = learn(*backend, settings, events);
    CHECK(stopped.stopped);
    CHECK(stopped.updates == 5);
    settings.resume = path;
    CHECK(run(settings).result.final_hash == whole.result.final_hash);
    std::filesystem::remove(path);
}

TEST_CASE("other objectives learn as well") {
    for (const Algorithm algorithm : {Algorithm::asymre, Algorithm::reinforce}) {
        LearnSettings settings = small_run(3, {1});
        settings.learner.objective.algorithm = algorithm;
        const Run learnt = run(settings);
        CHECK(learnt.reports.back().replicas[0].mean.gradient_norm > 0.0);
        // AsymRE learns from groups of equal rewards too.
        CHECK((learnt.reports.back().replicas[0].mean.trained_sequences == 32.0) == (algorithm == Algorithm::asymre));
    }
}

TEST_CASE("settings that contradict each other are refused") {
    LearnSettings settings = small_run(1, {1});
    settings.batch = 30;
    CHECK_THROWS_WITH_AS(run(settings), "A batch of 30 rollouts is not made of whole groups of 8.",
                         std::invalid_argument);
    CHECK_THROWS_AS(run(small_run(1, {})), std::invalid_argument);
    CHECK_THROWS_AS(run(small_run(-1, {1})), std::invalid_argument);
}
