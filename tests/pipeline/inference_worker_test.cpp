#include "sim/pipeline/inference_worker.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/engine/distribution.h"
#include "tests/pipeline/worker_driver.h"

using namespace millrace;
using namespace millrace_test;

namespace {

/// Random arrivals in bursts and gaps, prompts and responses of mixed length.
std::vector<TokenSequence> random_workload(std::uint64_t seed, int count, double mean_gap_ns, std::int64_t max_tokens) {
    const RandomStream stream(seed, 0, Purpose::test_schedule);
    std::vector<TokenSequence> sequences;
    std::int64_t at = 0;
    for (int i = 0; i < count; ++i) {
        Draw draw(stream, static_cast<std::uint64_t>(i));
        if (draw.below(3) != 0) {
            at += static_cast<std::int64_t>(-mean_gap_ns * std::log(draw.uniform()));
        }
        TokenSequence s;
        s.id = i;
        s.arrives_ns = at;
        s.prompt_tokens = static_cast<std::int32_t>(draw.below(200));
        s.response_tokens = 1 + static_cast<std::int32_t>(draw.below(static_cast<std::uint64_t>(max_tokens)));
        sequences.push_back(s);
    }
    return sequences;
}

/// Pauses and the time between them are of the same mean length.
std::vector<TokenPause> random_pauses(std::uint64_t seed, int count, double mean_ns) {
    const RandomStream stream(seed, 1, Purpose::test_schedule);
    std::vector<TokenPause> pauses;
    std::int64_t at = 0;
    for (int i = 0; i < count; ++i) {
        Draw draw(stream, static_cast<std::uint64_t>(i));
        const auto some = [&] { return 1 + static_cast<std::int64_t>(-mean_ns * std::log(draw.uniform())); };
        const std::int64_t from = at + some();
        at = from + some();
        pauses.push_back({from, at});
    }
    return pauses;
}

void check_against_reference(const TokenLaw& law, std::int64_t slots, std::int64_t kv_cap,
                             const std::vector<TokenSequence>& workload, const std::vector<TokenPause>& pauses,
                             std::uint64_t seed) {
    const StepTiming timing{law.base_ns, law.per_sequence_ns, law.per_context_token_ns, law.prefill_per_token_ns};
    const auto expected = run_token_by_token(law, slots, kv_cap, workload, pauses);
    const auto found = run_worker(timing, slots, kv_cap, workload, pauses);
    for (std::size_t i = 0; i < workload.size(); ++i) {
        INFO("seed " << seed << ", " << pauses.size() << " pauses, sequence " << i);
        REQUIRE(found[i].ended_ns == expected[i].ended_ns);
    }
}

}  // namespace

TEST_CASE("closed-form steps equal a token-by-token simulation exactly when step times are whole nanoseconds") {
    // Arrivals and pauses then often fall exactly on a boundary, above all under the first-order law.
    for (const TokenLaw& law : {TokenLaw{5000.0, 300.0, 2.0, 40.0}, TokenLaw{.per_sequence_ns = 1.0}}) {
        const double step_ns = law.base_ns + 4.0 * law.per_sequence_ns;
        for (std::uint64_t seed = 1; seed <= 60; ++seed) {
            const std::int64_t slots = 1 + static_cast<std::int64_t>(seed % 13);
            const std::int64_t kv_cap = seed % 3 == 0 ? 1500 : 1'000'000;
            const double gap = (seed % 2 == 0 ? 4.0 : 400.0) * step_ns;
            const auto workload = random_workload(seed, 300, gap, 400);
            check_against_reference(law, slots, kv_cap, workload, {}, seed);
            check_against_reference(law, slots, kv_cap, workload, random_pauses(seed, 200, 200.0 * step_ns), seed);
        }
    }
}

TEST_CASE("closed-form steps equal a token-by-token simulation for any step times, arrivals and pauses") {
    // Both round each boundary to the nanosecond and let in who has come by then. Before rounding the closed form and
    // the sum of the steps differ by some 1e-7 ns, so about one boundary in 10^7 rounds the other way: at these seeds
    // no change of the batch does, and times are equal throughout.
    const TokenLaw law{4903.21739, 277.7719, 1.6180339, 33.3127};
    for (std::uint64_t seed = 100; seed < 160; ++seed) {
        const std::int64_t slots = 4 + static_cast<std::int64_t>(seed % 5);
        const std::int64_t kv_cap = seed % 3 == 0 ? 4000 : 1'000'000;
        const double gap = seed % 2 == 0 ? 500'000.0 : 5'000'000.0;
        const auto workload = random_workload(seed, 200, gap, 1000);
        check_against_reference(law, slots, kv_cap, workload, {}, seed);
        check_against_reference(law, slots, kv_cap, workload, random_pauses(seed, 150, 1'000'000.0), seed);
    }
}

TEST_CASE("one sequence alone takes the sum of its steps") {
    const StepTiming timing{10.0, 5.0, 1.0, 3.0};
    InferenceWorker worker(timing, 4, std::nullopt);
    worker.join({100}, 0, 7, 4, 4);
    // Steps hold 7, 8, 9, 10 tokens: 4 x 15 + 34, and 21 of prefill.
    CHECK(worker.next_change() == Time{100 + 60 + 34 + 21});
}

TEST_CASE("a sequence that comes in the middle of a step joins at its end") {
    const StepTiming timing{.base_ns = 10.0};
    InferenceWorker worker(timing, 4, std::nullopt);
    std::vector<RolloutIndex> finished;
    worker.join({0}, 0, 0, 5, 5);
    worker.join({25}, 1, 0, 1, 1);
    CHECK(worker.occupied() == 2);
    CHECK(worker.next_change() == Time{30});
    worker.change_batch({30}, finished);
    CHECK(finished.empty());
    CHECK(worker.next_change() == Time{40});
    worker.change_batch({40}, finished);
    CHECK(finished == std::vector<RolloutIndex>{1});
    CHECK(worker.next_change() == Time{50});
}

TEST_CASE("a pause shifts everything by its length, also within a step") {
    const StepTiming timing{.base_ns = 10.0};
    InferenceWorker worker(timing, 4, std::nullopt);
    worker.join({0}, 0, 0, 5, 5);
    worker.pause({23});
    CHECK(worker.next_change() == end_of_time);
    worker.resume({1023});
    CHECK(worker.next_change() == Time{1050});
}

TEST_CASE("key-value memory limits what runs at once") {
    const StepTiming timing{.base_ns = 1.0};
    InferenceWorker worker(timing, 8, 100);
    worker.join({0}, 0, 20, 40, 40);
    CHECK(worker.has_memory(40));
    CHECK_FALSE(worker.has_memory(41));
    // What counts is tokens, however many steps they take.
    worker.join({0}, 1, 10, 20, 5000);
    CHECK(worker.has_memory(10));
    CHECK_FALSE(worker.has_memory(11));
    std::vector<RolloutIndex> finished;
    worker.change_batch({40}, finished);
    CHECK(worker.has_memory(70));
    CHECK_FALSE(worker.has_memory(71));
    worker.change_batch({5000}, finished);
    CHECK(finished == std::vector<RolloutIndex>{0, 1});
    CHECK(worker.has_memory(100));
    CHECK_FALSE(worker.has_memory(101));
}

TEST_CASE("under the first-order law n sequences share the GPU equally") {
    const StepTiming timing{.per_sequence_ns = 1.0};
    InferenceWorker worker(timing, 4, std::nullopt);
    std::vector<RolloutIndex> finished;
    worker.join({0}, 0, 0, 10, 1000);
    worker.join({0}, 1, 0, 10, 3000);
    CHECK(worker.next_change() == Time{2000});
    worker.change_batch({2000}, finished);
    CHECK(finished == std::vector<RolloutIndex>{0});
    CHECK(worker.next_change() == Time{4000});
}

TEST_CASE("sequences that end in the same step end in the order in which they joined, whatever their slots") {
    const StepTiming timing{.base_ns = 10.0};
    InferenceWorker worker(timing, 5, std::nullopt);
    std::vector<RolloutIndex> finished;
    for (RolloutIndex rollout = 0; rollout < 5; ++rollout) {
        worker.join({0}, rollout, 0, 1, rollout < 3 ? 1 + rollout : 9);
    }
    // The slots of 0, 1 and 2 are taken again in the reverse order of their numbers, or of their last occupants.
    for (const std::int64_t step : {1, 2, 3}) {
        worker.change_batch({10 * step}, finished);
    }
    for (RolloutIndex rollout = 5; rollout < 8; ++rollout) {
        worker.join({30}, rollout, 0, 1, 6);
    }
    CHECK(worker.next_to_end() >= 3);
    finished.clear();
    worker.change_batch({90}, finished);
    CHECK(finished == std::vector<RolloutIndex>{3, 4, 5, 6, 7});
    CHECK(worker.next_change() == end_of_time);
}

TEST_CASE("a worker that is never empty counts its steps for ever, but not a sequence of too many") {
    const StepTiming timing{.per_sequence_ns = 1.0};
    // With 10 bits for the slot, a key has 54 for the step, and all ones stand for none.
    constexpr std::int64_t most = (std::int64_t{1} << 54) - 2;
    InferenceWorker worker(timing, 1024, std::nullopt);
    std::vector<RolloutIndex> finished;
    Time now;
    worker.join(now, 0, 0, 1, most / 2);
    for (RolloutIndex rollout = 1; rollout < 20; ++rollout) {
        // Two overlap always. Each ends half of `most` after the one before: for two a step takes 2 ns.
        worker.join(now, rollout, 0, 1, most);
        now = worker.next_change();
        finished.clear();
        worker.change_batch(now, finished);
        REQUIRE(finished == std::vector<RolloutIndex>{rollout - 1});
        REQUIRE(now == Time{rollout * most});
        REQUIRE(worker.progress(now).size() == 1);
        REQUIRE(worker.progress(now).front().written == 0.5);
    }
    worker.join(now, 20, 0, 1, most);
    CHECK_THROWS_WITH_AS(worker.join(now, 21, 0, 1, most + 1),
                         doctest::Contains("more steps than a worker of 1024 slots can count"), std::overflow_error);

    InferenceWorker alone(timing, 1024, std::nullopt);
    alone.join({0}, 0, 0, 1, most);
    finished.clear();
    alone.change_batch({most}, finished);
    CHECK(finished == std::vector<RolloutIndex>{0});
    CHECK(alone.next_change() == end_of_time);
}
