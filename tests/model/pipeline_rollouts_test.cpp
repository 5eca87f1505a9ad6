// Single rollouts of a learner inside a pipeline: who has written them, what they are worth, what they cost.
#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "model/generation.h"
#include "model/pipeline_learner.h"
#include "tests/model/pipeline_learners.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("a policy that takes over from itself changes nothing") {
    const auto backend = make_reference_backend(1);
    auto learner = tiny_task_learner(*backend);
    const std::vector<std::uint64_t> ids = ids_from(0, 12);
    const std::vector<TaskRollout> whole = learner.generate(learner.policy(), ids, group_size);
    for (const int first_token : {1, 2, 3}) {
        std::vector<TaskRollout> again = whole;
        std::vector<TaskRollout*> pointers;
        for (TaskRollout& rollout : again) {
            pointers.push_back(&rollout);
        }
        const std::int64_t tokens = learner.generated_tokens()[0];
        learner.rewrite(learner.policy(), ids, pointers, first_token);
        CHECK(learner.generated_tokens()[0] == tokens);
        for (std::size_t i = 0; i < ids.size(); ++i) {
            CHECK(again[i].tokens == whole[i].tokens);
            CHECK(again[i].answer_tokens == whole[i].answer_tokens);
            CHECK(again[i].reward == whole[i].reward);
            CHECK(again[i].policy_version == written_by_several);
            const auto length = static_cast<std::size_t>(whole[i].answer_tokens[0]);
            for (std::size_t t = 0; t < length; ++t) {
                CHECK(again[i].log_probability[t] == whole[i].log_probability[t]);
            }
        }
    }
}

namespace {

/// What `policy` writes after the prompt and the first `kept` answer tokens of `text`, found without a learner.
TaskRollout continued(Backend<Float64>& backend, const Weights<Float64>& policy, std::uint64_t id,
                      const TaskRollout& text, int kept) {
    const int room = small_sequence - small_prompt;
    Generator<Float64> generator(backend, policy.shape(), small_prompt + kept, room - kept);
    const std::vector<std::uint64_t> seeds{1};
    const std::vector<std::uint64_t> ids{id};
    const auto there = std::span(text.tokens).first(static_cast<std::size_t>(small_prompt + kept));
    const auto rest = generator.generate(
        policy, {.prompts = 1, .copies = 1, .prompt_tokens = there, .seeds = seeds, .sequence_ids = ids});
    TaskRollout result = text;
    result.tokens = rest.tokens;
    result.answer_tokens[0] = kept + rest.answer_tokens[0];
    std::ranges::copy(rest.log_probability, result.log_probability.begin() + kept);
    return result;
}

void check_text(const TaskRollout& found, const TaskRollout& expected) {
    CHECK(found.tokens == expected.tokens);
    CHECK(found.answer_tokens == expected.answer_tokens);
    for (std::size_t t = 0; t < static_cast<std::size_t>(expected.answer_tokens[0]); ++t) {
        CHECK(found.log_probability[t] == expected.log_probability[t]);
    }
    const auto tokens = std::span(found.tokens);
    const bool correct = Task(sort3).is_correct(tokens.first(small_prompt), tokens.subspan(small_prompt));
    CHECK(found.reward[0] == (correct ? 1.0 : 0.0));
}

}  // namespace

TEST_CASE("a rollout that spans versions begins as the first would write it and goes on as the later ones would") {
    const auto backend = make_reference_backend(1);
    auto learner = tiny_learner(*backend, in_place_pipeline(), 100);
    auto twin = tiny_task_learner(*backend);
    const auto keep = [&](std::vector<std::int32_t> versions) { learner.keep(versions); };
    const auto update = [&](std::int32_t version, std::uint64_t first) {
        learner.update(version, ids_from(first, group_size));
        learner.updated(version + 1, {});
        std::vector<const TaskRollout*> same;
        for (const std::uint64_t id : ids_from(first, group_size)) {
            same.push_back(learner.text(id));
        }
        twin.update(same);
    };
    const auto finish = [&](std::uint64_t first) {
        for (const std::uint64_t id : ids_from(first, group_size)) {
            learner.finish(id);
        }
    };

    keep({0});
    for (const std::uint64_t id : ids_from(0, 12)) {
        learner.begin(id, 0);
    }
    const auto a = twin.snapshot();
    const std::vector<TaskRollout> by_a = twin.generate(*a, ids_from(0, 12), group_size);
    finish(0);
    update(0, 0);
    for (const std::uint64_t id : ids_from(0, group_size)) {
        check_text(*learner.text(id), by_a[id]);
        CHECK(learner.text(id)->policy_version == 0);
    }
    CHECK(learner.text(4) == nullptr);  // it may still switch

    // Answers have room for four tokens.
    const auto b = twin.snapshot();
    keep({0, 1});
    learner.switch_version(4, 1, 0.5);
    learner.switch_version(5, 1, 0.76);
    learner.switch_version(6, 1, 0.3);
    learner.switch_version(7, 1, 0.24);  // has not got its first token
    for (const std::uint64_t id : ids_from(8, group_size)) {
        learner.switch_version(id, 1, 0.4);
    }
    finish(4);
    update(1, 4);
    const std::vector<int> kept{2, 3, 1, 0};
    bool differs = false;
    for (const std::uint64_t id : ids_from(4, group_size)) {
        const int tokens = kept[id - 4];
        const TaskRollout expected = continued(*backend, *b, id, by_a[id], tokens);
        check_text(*learner.text(id), expected);
        CHECK(learner.text(id)->policy_version == (tokens == 0 ? 1 : written_by_several));
        differs = differs || expected.log_probability != by_a[id].log_probability;
    }
    CHECK(differs);

    const auto c = twin.snapshot();
    CHECK(learner.versions_held() == 2);
    keep({1, 2});
    CHECK(learner.versions_held() == 3);  // version 0 has begun what is not written yet
    learner.switch_version(8, 2, 0.9);
    learner.switch_version(9, 2, 0.9);
    learner.switch_version(10, 2, 0.49);  // version 1 has not written a token
    finish(8);
    update(2, 8);
    CHECK(learner.versions_held() == 2);
    const auto by_b = [&](std::uint64_t id) { return continued(*backend, *b, id, by_a[id], 1); };
    check_text(*learner.text(8), continued(*backend, *c, 8, by_b(8), 3));
    check_text(*learner.text(9), continued(*backend, *c, 9, by_b(9), 3));
    check_text(*learner.text(10), continued(*backend, *c, 10, by_a[10], 1));
    check_text(*learner.text(11), by_b(11));
    CHECK(weights_hash(learner.learner()) == weights_hash(twin));
}

TEST_CASE("an advantage counts the whole group, also members that are dropped before anybody has read them") {
    const auto backend = make_reference_backend(1);
    auto twin = tiny_task_learner(*backend);
    const std::vector<TaskRollout> expected = twin.generate_next(twin.policy(), 8, group_size);
    int mattered = 0;
    for (std::uint64_t group = 0; group < 8; ++group) {
        auto learner = tiny_learner(*backend, tiny_pipeline(), 100);
        const std::vector<std::int32_t> versions{0};
        learner.keep(versions);
        for (std::uint64_t id = 0; id < (group + 1) * group_size; ++id) {
            learner.begin(id, 0);
            learner.finish(id);
        }
        const std::uint64_t first = group * group_size;
        learner.forget(first);
        learner.forget(first + 1);
        learner.update(0, ids_from(first + 2, 2));
        for (const std::uint64_t id : ids_from(first + 2, 2)) {
            CHECK(learner.text(id)->advantage == expected[id].advantage);
            mattered += expected[id].advantage[0] != 0.0 ? 1 : 0;
        }
        CHECK(learner.text(first) == nullptr);
    }
    CHECK(mattered >= 4);
}

TEST_CASE("a rollout that was promised not to switch must not") {
    const auto backend = make_reference_backend(1);
    auto learner = tiny_learner(*backend, tiny_pipeline(), 100);
    const std::vector<std::int32_t> versions{0};
    learner.keep(versions);
    learner.begin(0, 0);
    CHECK_THROWS_AS(learner.switch_version(0, 0, 0.5), std::logic_error);
    const std::vector<std::int32_t> unknown{0, 1};
    CHECK_THROWS_AS(learner.keep(unknown), std::logic_error);
}

TEST_CASE("compute is counted in active GPU-seconds, and the run ends with the update that reaches its budget") {
    const auto backend = make_cpu_backend(1);
    PipelineLearnerSettings settings;
    settings.learner = tiny_settings();
    settings.group_size = 1;
    settings.unit_gpu_s = 2.0;
    settings.evaluate_every_units = 4.0;
    settings.budget_units = 11.0;
    const std::vector<std::uint64_t> seeds{1};
    PipelineLearner<Float32> learner(*backend, settings, seeds, tiny_theta_0());
    learner.evaluate_start();
    const auto spend = [](double units) {
        return ComputeSpent{.at = {1'000'000'000},
                            .worker_active_gpu_s = 1.5 * units,
                            .trainer_active_gpu_s = 0.5 * units,
                            .reserved_gpu_s = 3.0 * units};
    };
    std::vector<std::size_t> points;
    for (const double units : {3.0, 4.0, 5.0, 9.0, 10.9}) {
        CHECK(learner.updated(1, spend(units)));
        points.push_back(learner.curve().size());
    }
    CHECK(points == std::vector<std::size_t>{1, 2, 2, 3, 3});
    CHECK(!learner.updated(1, spend(11.0)));
    CHECK(learner.curve().size() == 4);
    CHECK(learner.curve().back().units == 11.0);
    CHECK(learner.curve().back().active_gpu_s == 22.0);
    CHECK(learner.curve().back().reserved_gpu_s == 33.0);
}
