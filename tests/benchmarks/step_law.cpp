// The closed-form worker against token-by-token simulations of the same workload, in the same process.
//
// Three references. A bare loop over steps and sequences without a clock to share: what a token costs at the very
// least. A simulation on the same event queue with one event per decode step, as simulators of inference engines do it.
// And one with an event per token of each sequence.
//
// Floor: a rollout of 1,000 tokens costs the bare loop 1,000 sequence-steps of a few memory operations, 1 to 2
// microseconds, plus its share of the steps; the closed form pays one match per level of a tournament, two
// square-root-free sums and a wake-up, some tens of nanoseconds. Prediction: 40 to 150 times, more for small batches,
// where the cost of a step is shared by fewer sequences; an event per token, some 40 ns, 500 to 1,000 times.
#include <benchmark/benchmark.h>

#include "sim/engine/distribution.h"
#include "tests/benchmarks/cpu_time.h"
#include "tests/benchmarks/token_events.h"
#include "tests/pipeline/worker_driver.h"

namespace {

using namespace millrace;
using namespace millrace_test;

constexpr std::int64_t rollouts = 2000;
constexpr std::int64_t unlimited = std::int64_t{1} << 40;
constexpr TokenLaw law{5e6, 2e5, 100.0, 1e4};
constexpr int repeats = 20;  // of the closed form, which is too short to time

std::vector<TokenSequence> some_workload() {
    const RandomStream stream(1, 0, Purpose::test_services);
    const Distribution length = Distribution::lognormal(1000.0, 0.5);
    std::vector<TokenSequence> workload;
    for (std::int64_t i = 0; i < rollouts; ++i) {
        Draw draw(stream, static_cast<std::uint64_t>(i));
        TokenSequence s;
        s.id = i;
        s.prompt_tokens = 300;
        s.response_tokens = 1 + static_cast<std::int32_t>(length.sample(draw));
        workload.push_back(s);
    }
    return workload;
}

std::vector<TokenSequence> bare_loop(std::int64_t slots, const std::vector<TokenSequence>& workload) {
    return run_token_by_token(law, slots, unlimited, workload);
}

template <TokenEvents events>
std::vector<TokenSequence> event_queue(std::int64_t slots, const std::vector<TokenSequence>& workload) {
    return TokenEventWorker<events>(law, slots, workload).run();
}

void step_law(benchmark::State& state, decltype(bare_loop) reference) {
    const std::int64_t slots = state.range(0);
    const StepTiming timing{law.base_ns, law.per_sequence_ns, law.per_context_token_ns, law.prefill_per_token_ns};
    const std::vector<TokenSequence> workload = some_workload();
    double reference_s = 0.0;
    double closed_s = 0.0;
    for (auto _ : state) {
        double start = cpu_seconds();
        const auto expected = reference(slots, workload);
        reference_s += cpu_seconds() - start;
        std::vector<TokenSequence> found;
        start = cpu_seconds();
        for (int again = 0; again < repeats; ++again) {
            benchmark::DoNotOptimize(found = run_worker(timing, slots, unlimited, workload));
        }
        closed_s += (cpu_seconds() - start) / repeats;
        for (std::size_t i = 0; i < workload.size(); ++i) {
            if (found[i].ended_ns != expected[i].ended_ns) {
                state.SkipWithError("the closed form and the reference disagree about when a rollout ends");
                return;
            }
        }
    }
    state.counters["ratio"] = reference_s / closed_s;
    const auto all_rollouts = static_cast<double>(rollouts * state.iterations());
    state.counters["ns_per_rollout"] = closed_s * 1e9 / all_rollouts;
    state.counters["reference_ns_per_rollout"] = reference_s * 1e9 / all_rollouts;
}

void slots(benchmark::internal::Benchmark* benchmark) {
    benchmark->ArgName("slots")->Arg(1)->Arg(4)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(step_law, against_bare_loop, bare_loop)->Apply(slots);
BENCHMARK_CAPTURE(step_law, against_event_per_step, event_queue<TokenEvents::per_step>)->Apply(slots);
BENCHMARK_CAPTURE(step_law, against_event_per_token, event_queue<TokenEvents::per_token>)->Apply(slots);

}  // namespace
