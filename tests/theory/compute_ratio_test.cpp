#include "sim/theory/compute_ratio.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

using namespace millrace;

namespace {

/// (W, T) of the paper's table of gamma, and of its three long sweeps.
constexpr std::array<std::array<double, 2>, 6> splits = {{{7, 1}, {6, 2}, {5, 3}, {4, 4}, {2, 6}, {1, 7}}};
constexpr std::array<std::array<double, 2>, 3> sweep_splits = {{{6, 2}, {5, 3}, {4, 4}}};

double to_two_decimals(double value) {
    return std::round(100.0 * value) / 100.0;
}

}  // namespace

TEST_CASE("compute ratio of the published splits") {
    // mu = 5.28 (Qwen2.5-7B). The printed row, 1.29 0.65 0.43 0.32 0.22 0.18, is that of mu = 5.2.
    constexpr std::array<double, 6> for_528 = {1.27, 0.64, 0.42, 0.32, 0.21, 0.18};
    constexpr std::array<double, 6> printed = {1.29, 0.65, 0.43, 0.32, 0.22, 0.18};
    // mu = 6.84 (Qwen3-0.6B). Printed as 0.41 at (6,2): a slip, the paper uses 0.51 elsewhere.
    constexpr std::array<double, 6> for_684 = {1.02, 0.51, 0.34, 0.26, 0.17, 0.15};
    for (std::size_t i = 0; i < splits.size(); ++i) {
        const auto [workers, trainers] = splits[i];
        CHECK(to_two_decimals(compute_ratio(workers, trainers, 5.28)) == doctest::Approx(for_528[i]));
        CHECK(to_two_decimals(compute_ratio(workers, trainers, 5.2)) == doctest::Approx(printed[i]));
        CHECK(to_two_decimals(compute_ratio(workers, trainers, 6.84)) == doctest::Approx(for_684[i]));
    }
}

TEST_CASE("a buffered pipeline at W/T = mu costs what a pipeline without one does") {
    CHECK(compute_ratio(5.28, 1.0, 5.28) == 1.0);
    CHECK(mean_replay_ratio_async(5.28, 5.28, 1.0) == 1.0);
    CHECK(update_compute_with_buffer(6, 2) == 4.0);
    CHECK(update_compute_without_buffer(5.0) == 6.0);
    CHECK(mean_replay_ratio_sync(64, 16) == 4.0);
}

TEST_CASE("first-order replay ratios of the published splits, and the mu that the measured ones imply") {
    constexpr std::array<double, 3> first_order_7b = {1.76, 3.17, 5.28};
    constexpr std::array<double, 3> first_order_06b = {2.28, 4.10, 6.84};
    constexpr std::array<double, 3> measured_7b = {1.78, 3.42, 7.0};
    constexpr std::array<double, 3> measured_06b = {2.2, 5.6, 17.6};
    double previous_7b = 0.0;
    double previous_06b = 0.0;
    for (std::size_t i = 0; i < sweep_splits.size(); ++i) {
        const auto [workers, trainers] = sweep_splits[i];
        CHECK(to_two_decimals(mean_replay_ratio_async(5.28, workers, trainers)) == doctest::Approx(first_order_7b[i]));
        CHECK(to_two_decimals(mean_replay_ratio_async(6.84, workers, trainers)) == doctest::Approx(first_order_06b[i]));
        const double mu_7b = effective_mu_of_replay_ratio(measured_7b[i], workers, trainers);
        const double mu_06b = effective_mu_of_replay_ratio(measured_06b[i], workers, trainers);
        CHECK(mu_7b > previous_7b);
        CHECK(mu_06b > previous_06b);
        previous_7b = mu_7b;
        previous_06b = mu_06b;
    }
    CHECK(effective_mu_of_replay_ratio(1.78, 6, 2) == doctest::Approx(5.3).epsilon(0.01));
    CHECK(previous_7b == doctest::Approx(7.0));
    CHECK(effective_mu_of_replay_ratio(2.2, 6, 2) == doctest::Approx(6.6));
    CHECK(previous_06b == doctest::Approx(17.6));
    // The same from counts: 1000 updates of 60, 20,000 unique rollouts.
    CHECK(effective_mu(60'000, 20'000, 5, 3) == doctest::Approx(5.0));
}

TEST_CASE("fixed cost per rollout: mu is generation over training") {
    CHECK(first_order_imbalance(60, 2.2, 25.0) == doctest::Approx(5.28));
}

TEST_CASE("mean context of fixed lengths is the prompt plus the middle of the response") {
    CHECK(mean_context_tokens(independent_tokens(100.0, 1.0, 1.0)) == 100.0);
    CHECK(mean_context_tokens(independent_tokens(100.0, 9.0, 81.0)) == doctest::Approx(104.0));
    const StepLaw law{
        .base_s = 0.01, .per_sequence_s = 0.001, .per_context_token_s = 1e-6, .prefill_per_token_s = 1e-5};
    // 9 tokens, alone on the worker: 9 a + 9 b + c (100 + 101 + ... + 108) + 100 prefill.
    CHECK(full_slots_gpu_s_per_rollout(law, independent_tokens(100.0, 9.0, 81.0), 1.0) ==
          doctest::Approx(0.09 + 0.009 + 936e-6 + 1e-3));
    CHECK(full_slots_imbalance(law, independent_tokens(100.0, 9.0, 81.0), 1.0, 60.0, 3.0) ==
          doctest::Approx(20.0 * (0.09 + 0.009 + 936e-6 + 1e-3)));
}

TEST_CASE("full slots: the formula agrees with a worker stepped token by token") {
    // Lengths 1 or 40, prompts longer for long responses, so that E[p L] differs from E[p] E[L].
    const StepLaw law{.base_s = 3.0, .per_sequence_s = 0.5, .per_context_token_s = 0.02, .prefill_per_token_s = 0.1};
    struct Kind {
        std::int64_t prompt, response;
    };
    constexpr std::array<Kind, 2> kinds = {{{5, 1}, {30, 40}}};
    TokenMoments tokens{.prompt = 17.5,
                        .response = 20.5,
                        .response_squared = 0.5 * (1.0 + 1600.0),
                        .prompt_times_response = 0.5 * (5.0 + 1200.0)};

    constexpr std::size_t slots = 8;
    struct Slot {
        std::int64_t context = 0, left = 0;
    };
    std::array<Slot, slots> running{};
    std::mt19937_64 random(1);
    double busy_s = 0.0;
    std::int64_t completed = 0;
    for (int step = 0; step < 400'000; ++step) {
        double context = 0.0;
        for (Slot& slot : running) {
            if (slot.left == 0) {
                const Kind kind = kinds[random() & 1];
                slot = {.context = kind.prompt, .left = kind.response};
                busy_s += law.prefill_per_token_s * static_cast<double>(kind.prompt);
            }
            context += static_cast<double>(slot.context);
            ++slot.context;
            completed += --slot.left == 0;
        }
        busy_s += law.base_s + law.per_sequence_s * slots + law.per_context_token_s * context;
    }
    CHECK(busy_s / static_cast<double>(completed) ==
          doctest::Approx(full_slots_gpu_s_per_rollout(law, tokens, slots)).epsilon(0.01));
}

TEST_CASE("arguments without a meaning are refused") {
    CHECK_THROWS_AS(compute_ratio(1, 0, 5), std::domain_error);
    CHECK_THROWS_AS(compute_ratio(-1, 1, 5), std::domain_error);
    CHECK_THROWS_AS(compute_ratio(1, 1, 0), std::domain_error);
    CHECK_THROWS_AS(compute_ratio(1, 1, std::nan("")), std::domain_error);
    CHECK_THROWS_AS(mean_replay_ratio_async(5, 0, 1), std::domain_error);
    CHECK_THROWS_AS(mean_replay_ratio_sync(0, 1), std::domain_error);
    CHECK_THROWS_AS(effective_mu(0, 1, 1, 1), std::domain_error);
    CHECK_THROWS_AS(first_order_imbalance(1, 0, 1), std::domain_error);
    CHECK_THROWS_AS(mean_context_tokens(independent_tokens(1.0, 10.0, 99.0)), std::domain_error);
    CHECK_THROWS_AS(mean_context_tokens({.prompt = 5.0, .response = 2.0, .response_squared = 4.0}), std::domain_error);
    CHECK_THROWS_AS(full_slots_gpu_s_per_rollout({}, {}, 0.0), std::domain_error);
    CHECK_THROWS_WITH(compute_ratio(1, 0, 5), "The number of trainers must be positive and finite, but is 0.");
}
