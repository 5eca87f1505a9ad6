#include "model/evaluation/evaluate.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/model/small_model.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("a policy that knows nothing guesses uniformly") {
    const auto backend = make_reference_backend(1);
    Generator<Float64> generator(*backend, small_shape, small_prompt, small_sequence - small_prompt);
    const Weights<Float64> zero(*backend, small_shape, 2);
    const Task task(sort3);
    const EvaluationSettings settings{.every_updates = 1, .sampled_prompts = 32, .samples = 4, .greedy_prompts = 8};
    const std::vector<Evaluation> both = evaluate(generator, task, settings, zero);
    REQUIRE(both.size() == 2);
    const Evaluation& one = both[0];
    CHECK(one.pass_at_1 < 0.05);  // 1/20^4 for every sample
    CHECK(one.pass_at_4.has_value());
    CHECK_FALSE(one.pass_at_16.has_value());
    CHECK(*one.greedy == 0.0);
    CHECK(one.entropy == doctest::Approx(std::log(20.0)));
    CHECK(one.answer_tokens > 3.0);
    // The same prompts and random numbers for all replicas.
    CHECK(both[1].pass_at_1 == one.pass_at_1);
    CHECK(both[1].answer_tokens == one.answer_tokens);
}

TEST_CASE("without greedy prompts there is no greedy accuracy") {
    const auto backend = make_reference_backend(1);
    Generator<Float64> generator(*backend, small_shape, small_prompt, small_sequence - small_prompt);
    const Weights<Float64> zero(*backend, small_shape, 1);
    const EvaluationSettings settings{.every_updates = 1, .sampled_prompts = 2, .samples = 16, .greedy_prompts = 0};
    const Evaluation one = evaluate(generator, Task(sort3), settings, zero)[0];
    CHECK_FALSE(one.greedy.has_value());
    CHECK(one.pass_at_16.has_value());
}
