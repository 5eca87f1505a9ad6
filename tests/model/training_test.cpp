#include "model/training.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/model/small_model.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr ObjectiveSettings grpo;
constexpr OptimizerSettings optimizer{1e-2, 0.9, 0.99, 1e-8, 0.0, 1.0, 0};

template <typename P>
Trainer<P> small_trainer(Backend<P>& backend, int replicas) {
    return Trainer<P>(backend, small_shape, replicas, small_prompt, small_sequence);
}

/// Weights after a few updates with batches of 100 rollouts: several tasks for each replica.
std::vector<float> trained(int threads, std::span<const std::uint64_t> replica_seeds) {
    const auto backend = make_cpu_backend(threads);
    const int replicas = static_cast<int>(replica_seeds.size());
    Trainer<Float32> trainer = small_trainer(*backend, replicas);
    std::vector<float> start;
    std::vector<std::vector<TaskRollout>> own;  // of each replica
    for (const std::uint64_t seed : replica_seeds) {
        const auto weights = test_weights<float>(small_shape, seed);
        start.insert(start.end(), weights.begin(), weights.end());
        own.push_back(random_rollouts(100, 1, seed));
    }
    std::vector<TaskRollout> rollouts(100);
    for (std::size_t i = 0; i < rollouts.size(); ++i) {
        for (auto& list : own) {
            // Some advantages vanish, other ones in other replicas.
            list[i].advantage[0] = list[i].advantage[0] < -0.5 ? 0.0 : list[i].advantage[0];
            const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
            append(rollouts[i].tokens, list[i].tokens);
            append(rollouts[i].answer_tokens, list[i].answer_tokens);
            append(rollouts[i].log_probability, list[i].log_probability);
            append(rollouts[i].advantage, list[i].advantage);
        }
    }
    trainer.start(start);
    const auto batch = pointers_to(rollouts);
    for (int update = 0; update < 4; ++update) {
        trainer.update(batch, grpo, optimizer, 1e-2);
    }
    return trainer.weights().download();
}

}  // namespace

TEST_CASE("new weights are the same bytes for any number of threads") {
    const std::vector<std::uint64_t> seeds{1, 2};
    const std::vector<float> one = trained(1, seeds);
    CHECK(one == trained(2, seeds));
    CHECK(one == trained(3, seeds));
}

TEST_CASE("replicas at once are replicas one by one, to the last bit") {
    std::vector<float> alone;
    for (const std::uint64_t seed : {1, 2, 3}) {
        const std::vector<float> weights = trained(1, std::vector<std::uint64_t>{seed});
        alone.insert(alone.end(), weights.begin(), weights.end());
    }
    CHECK(alone == trained(2, std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_CASE("the gradient of a batch is the mean of its rollouts' gradients") {
    const auto backend = make_reference_backend(1);
    auto trainer = small_trainer(*backend, 1);
    trainer.start(test_weights<double>(small_shape, 1));
    const std::vector<TaskRollout> rollouts = random_rollouts(90, 1, 3);  // two tasks
    const ObjectiveRule rule;
    const std::vector<double> whole = trainer.gradient(pointers_to(rollouts), rule);
    std::vector<double> mean(whole.size(), 0.0);
    for (const TaskRollout& rollout : rollouts) {
        const TaskRollout* one = &rollout;
        const std::vector<double> part = trainer.gradient(std::span(&one, 1), rule);
        for (std::size_t i = 0; i < mean.size(); ++i) {
            mean[i] += part[i] / 90.0;
        }
    }
    double largest = 0.0;
    for (std::size_t i = 0; i < mean.size(); ++i) {
        largest = std::max(largest, std::abs(mean[i] - whole[i]));
    }
    CHECK(largest < 1e-14);
}

TEST_CASE("rollouts without advantage count in the mean but are not computed") {
    const auto backend = make_reference_backend(1);
    auto trainer = small_trainer(*backend, 1);
    trainer.start(test_weights<double>(small_shape, 1));
    std::vector<TaskRollout> rollouts = random_rollouts(8, 1, 4);
    for (std::size_t i = 4; i < 8; ++i) {
        rollouts[i].advantage[0] = 0.0;
    }
    const auto all = pointers_to(rollouts);
    const std::vector<double> with = trainer.gradient(all, {});
    const std::vector<double> without = trainer.gradient(std::span(all).first(4), {});
    for (std::size_t i = 0; i < with.size(); ++i) {
        CHECK(with[i] == doctest::Approx(without[i] / 2.0).epsilon(1e-12));
    }
    const auto seen = trainer.update(all, grpo, optimizer, 1e-3);
    CHECK(seen[0].trained_sequences == 4.0);
    for (TaskRollout& rollout : rollouts) {
        rollout.advantage[0] = 0.0;
    }
    const auto nothing = trainer.update(all, grpo, optimizer, 1e-3);
    CHECK(nothing[0].trained_sequences == 0.0);
    CHECK(nothing[0].gradient_norm == 0.0);
}

TEST_CASE("statistics of ratios by hand") {
    const auto backend = make_reference_backend(1);
    auto trainer = small_trainer(*backend, 1);
    trainer.start(std::vector<double>(places_of(small_shape).size, 0.0));  // uniform over 20 tokens
    std::vector<TaskRollout> rollouts = random_rollouts(2, 1, 6);
    const double uniform = -std::log(20.0);
    rollouts[0].answer_tokens = {1};
    rollouts[0].advantage = {1.0};
    rollouts[0].log_probability = {uniform - std::log(1.5), 0, 0, 0};  // ratio 1.5: clipped, advantage > 0
    rollouts[1].answer_tokens = {2};
    rollouts[1].advantage = {1.0};
    rollouts[1].log_probability = {uniform + std::log(2.0), uniform, 0, 0};  // ratios 1/2 and 1: not clipped
    rollouts[0].policy_version = rollouts[1].policy_version = -1;
    const auto seen = trainer.update(pointers_to(rollouts), grpo, optimizer, 1e-3)[0];
    CHECK(seen.trained_tokens == 3.0);
    CHECK(seen.mean_abs_ratio_minus_1 == doctest::Approx((0.5 + 0.5 + 0.0) / 3.0));
    CHECK(seen.clipped_fraction == doctest::Approx(1.0 / 3.0));
    CHECK(seen.ess_token == doctest::Approx(9.0 / (3.0 * (2.25 + 0.25 + 1.0))));
    CHECK(seen.ess_sequence == doctest::Approx(4.0 / (2.0 * (2.25 + 0.25))));
    CHECK(seen.entropy == doctest::Approx(-uniform));
    CHECK(seen.log_probability == doctest::Approx(uniform));
}

TEST_CASE("ratios are exactly 1 for rollouts of the current version, and only for those") {
    const auto backend = make_cpu_backend(1);
    auto trainer = small_trainer(*backend, 1);
    trainer.start(test_weights<float>(small_shape, 1));
    std::vector<TaskRollout> rollouts = random_rollouts(50, 1, 7);
    CHECK(trainer.update(pointers_to(rollouts), grpo, optimizer, 0.0)[0].mean_abs_ratio_minus_1 == 0.0);
    const double stale = trainer.update(pointers_to(rollouts), grpo, optimizer, 0.0)[0].mean_abs_ratio_minus_1;
    CHECK(stale > 0.1);  // these log-probabilities are made up
    for (std::size_t i = 0; i < rollouts.size(); i += 2) {
        rollouts[i].policy_version = trainer.updates();
    }
    const auto mixed = trainer.update(pointers_to(rollouts), grpo, optimizer, 0.0)[0];
    CHECK(mixed.mean_abs_ratio_minus_1 > 0.2 * stale);
    CHECK(mixed.mean_abs_ratio_minus_1 < 0.8 * stale);
}

TEST_CASE("a supervised update of one example makes its answer likely") {
    const auto backend = make_reference_backend(1);
    auto trainer = small_trainer(*backend, 1);
    trainer.start(test_weights<double>(small_shape, 1));
    const std::vector<TaskRollout> example = random_rollouts(1, 1, 8);
    double log_probability = 0.0;
    for (int update = 0; update < 100; ++update) {
        log_probability = trainer.update_supervised(pointers_to(example), optimizer, 1e-2)[0].log_probability;
    }
    CHECK(log_probability > std::log(0.95));
}

TEST_CASE("a snapshot stays as it was, and its memory serves again when nobody holds it") {
    const auto backend = make_reference_backend(1);
    auto trainer = small_trainer(*backend, 1);
    const std::vector<double> start = test_weights<double>(small_shape, 1);
    trainer.start(start);
    const auto before = trainer.snapshot();
    const std::vector<TaskRollout> rollouts = random_rollouts(4, 1, 9);
    trainer.update(pointers_to(rollouts), grpo, optimizer, 1e-2);
    CHECK(before->version() == 0);
    CHECK(before->download() == start);
    auto after = trainer.snapshot();
    CHECK(after->version() == 1);
    CHECK(after->download() != start);
    const double* place = after->reals();
    after.reset();
    CHECK(trainer.snapshot()->reals() == place);
}

TEST_CASE("the learning rate rises, stays and falls") {
    const LearningRateSchedule schedule{.peak = 2.0, .warmup_updates = 50, .updates = 200, .annealed_updates = 100};
    CHECK(schedule.at(1) == doctest::Approx(2.0 / 50));
    CHECK(schedule.at(50) == 2.0);
    CHECK(schedule.at(101) == 2.0);
    CHECK(schedule.at(151) == doctest::Approx(1.0));
    CHECK(schedule.at(200) == doctest::Approx(2.0 / 100));
    CHECK(LearningRateSchedule{.peak = 2.0}.at(1) == 2.0);
}

TEST_CASE("rollouts of another learner are refused") {
    const auto backend = make_reference_backend(1);
    auto trainer = small_trainer(*backend, 2);
    const std::vector<TaskRollout> rollouts = random_rollouts(4, 1, 9);
    CHECK_THROWS_AS(trainer.update(pointers_to(rollouts), grpo, optimizer, 1e-2), std::invalid_argument);
    CHECK_THROWS_AS(trainer.update({}, grpo, optimizer, 1e-2), std::invalid_argument);
}
