// The closed-form worker against a token-by-token simulation of the same workload, in the same process.
//
// Floor: a rollout of 1,000 tokens costs the reference 1,000 sequence-steps of three memory operations or more, about
// a microsecond, plus its share of the loop over steps; the closed form pays one heap push and pop on the batch, two
// square-root-free sums and a wake-up, some tens of nanoseconds. Prediction: 40 to 150 times, more for small batches,
// where the reference's cost per step is shared by fewer sequences.
#include <benchmark/benchmark.h>

#include <chrono>

#include "sim/engine/distribution.h"
#include "tests/pipeline/worker_driver.h"

namespace {

using namespace millrace;
using namespace millrace_test;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void step_law_against_token_by_token(benchmark::State& state) {
    const std::int64_t slots = state.range(0);
    constexpr std::int64_t rollouts = 2000;
    const RandomStream stream(1, 0, Purpose::test_services);
    const Distribution length = Distribution::lognormal(1000.0, 0.5);
    std::vector<TokenSequence> workload;
    for (std::int64_t i = 0; i < rollouts; ++i) {
        Draw draw(stream, static_cast<std::uint64_t>(i));
        TokenSequence s;
        s.id = i;
        s.prompt_tokens = 300;
        s.response_tokens = 1 + static_cast<std::int64_t>(length.sample(draw));
        workload.push_back(s);
    }
    const std::int64_t unlimited = std::int64_t{1} << 40;
    double reference_s = 0.0;
    double closed_s = 0.0;
    for (auto _ : state) {
        auto start = std::chrono::steady_clock::now();
        benchmark::DoNotOptimize(run_token_by_token({5e6, 2e5, 100.0, 1e4}, slots, unlimited, workload));
        reference_s += seconds_since(start);
        start = std::chrono::steady_clock::now();
        for (int again = 0; again < 20; ++again) {
            benchmark::DoNotOptimize(run_worker({5e6, 2e5, 100.0, 1e4}, slots, unlimited, workload));
        }
        closed_s += seconds_since(start) / 20.0;
    }
    state.counters["ratio"] = reference_s / closed_s;
    state.counters["ns_per_rollout"] = closed_s * 1e9 / static_cast<double>(rollouts * state.iterations());
}
BENCHMARK(step_law_against_token_by_token)->Arg(1)->Arg(4)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace
