#include "model/task_learner.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "model/warm_start.h"
#include "tests/model/small_model.h"

using namespace millrace;
using namespace millrace::test;

namespace {

TaskLearner<Float64> small_learner(Backend<Float64>& backend, std::vector<std::uint64_t> seeds) {
    LearnerSettings settings = small_settings();
    settings.model = {.layers = 1, .width = 8, .heads = 2, .mlp_width = 8, .context = {}};
    const ModelShape shape = shape_of(settings.model, Task(settings.task));
    return TaskLearner<Float64>(backend, settings, seeds, test_weights<double>(shape, 1));
}

}  // namespace

TEST_CASE("a rollout is a function of its id and its policy, whoever is generated with it") {
    const auto backend = make_reference_backend(1);
    auto learner = small_learner(*backend, {1, 2});
    const std::vector<std::uint64_t> groups{8, 9, 10, 11, 4, 5, 6, 7};
    const auto whole = learner.generate(learner.policy(), groups, 4);
    const std::vector<std::uint64_t> scattered{6, 30, 9};
    const auto some = learner.generate(learner.policy(), scattered, 4);
    REQUIRE(whole.size() == 8);
    REQUIRE(some.size() == 3);
    CHECK(some[0].tokens == whole[6].tokens);
    CHECK(some[0].log_probability == whole[6].log_probability);
    CHECK(some[2].tokens == whole[1].tokens);
    CHECK(some[2].reward == whole[1].reward);
    // One prompt for a group, another one for another group, and for another replica.
    const auto prompt = [](const TaskRollout& rollout, int replica) {
        const auto begin = rollout.tokens.begin() + replica * small_sequence;
        return std::vector<Token>(begin, begin + small_prompt);
    };
    CHECK(prompt(whole[0], 0) == prompt(whole[3], 0));
    CHECK(prompt(whole[0], 0) != prompt(whole[4], 0));
    CHECK(prompt(whole[0], 0) != prompt(whole[0], 1));
}

TEST_CASE("training prompts are never held-out ones") {
    const auto backend = make_reference_backend(1);
    auto learner = small_learner(*backend, {1});
    for (const TaskRollout& rollout : learner.generate_next(learner.policy(), 50, 2)) {
        CHECK(learner.task().split_of(std::span(rollout.tokens).first(small_prompt)) == Split::train);
    }
    CHECK(learner.counters().rollouts == 100);
}

TEST_CASE("advantages belong to groups and replicas") {
    const auto backend = make_reference_backend(1);
    auto learner = small_learner(*backend, {1, 2});
    std::vector<TaskRollout> rollouts(2);
    rollouts[0].reward = {1.0, 1.0};
    rollouts[1].reward = {0.0, 1.0};
    std::vector<TaskRollout*> group;
    for (TaskRollout& rollout : rollouts) {
        rollout.advantage = {7.0, 7.0};
        group.push_back(&rollout);
    }
    learner.set_advantages(group);
    CHECK(rollouts[0].advantage[0] == doctest::Approx(0.5 / (0.5 + 1e-4)));
    CHECK(rollouts[1].advantage[0] == doctest::Approx(-0.5 / (0.5 + 1e-4)));
    CHECK(rollouts[0].advantage[1] == 0.0);
    CHECK(rollouts[1].advantage[1] == 0.0);
}

TEST_CASE("a policy of three updates ago is still there, and its rollouts can be trained on") {
    const auto backend = make_reference_backend(1);
    auto learner = small_learner(*backend, {1});
    const auto old = learner.snapshot();
    const std::vector<double> weights = old->download();
    for (int update = 0; update < 4; ++update) {
        std::vector<TaskRollout> rollouts = learner.generate_next(*old, 2, 4);
        for (std::size_t i = 0; i < rollouts.size(); ++i) {
            rollouts[i].advantage = {i % 2 == 0 ? 1.0 : -1.0};
        }
        CHECK(rollouts[0].policy_version == 0);
        const auto seen = learner.update(pointers_to(rollouts));
        CHECK((seen[0].mean_abs_ratio_minus_1 == 0.0) == (update == 0));
    }
    CHECK(learner.version() == 4);
    CHECK(old->download() == weights);
}
