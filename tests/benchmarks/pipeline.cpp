// Whole pipelines, with everything recorded: time per run, events per second, allocations per event.
//
// Floor: an event of the reference pipeline moves one rollout through one station. Its parts measured alone: pop and
// schedule 40 ns, length draw 25 ns, tournament of a worker's batch 20 ns, five changes of station 10 ns, its share of
// a batch's bookkeeping 5 ns; at two events per rollout about 55 ns an event. Prediction: 10 to 18 million events per
// second. Measured, with_servers: 14 in a fast hour of the machine, 9 in a slow one.
//
// Without a limit of reward servers the end of a grading is known when it begins, so a group takes one event and not
// one per member: 1.1 events per rollout, which is some 1,500 instructions and, on a core that does four to five of
// them a cycle, 105 ns. Where the time went, so that nobody has to find it again: instructions are spread evenly, and
// taking out a tenth of them gives little. What counts is where they wait. Two values went by way of the stack and were
// read back wider than they had been written (a std::optional<Time>, a Rollout{}), which stalls a core for a dozen
// cycles each: a tenth of the time. So did branches that nobody can predict: which part of the normal law a draw is
// from, whether a rollout was used before, where a sinking gap in the event heap ends. Sums per level, draws in passes
// of 64 and timers in place of heap events for the workers were another fifth.
#include <benchmark/benchmark.h>

#include "sim/pipeline/pipeline.h"
#include "tests/benchmarks/reference_pipeline.h"
#include "tests/engine/allocation_counter.h"

namespace {

using namespace millrace;
using namespace millrace_test;

void run(benchmark::State& state, const PipelineConfig& config, std::int64_t updates) {
    std::uint64_t events = 0;
    std::uint64_t replication = 0;
    for (auto _ : state) {
        Pipeline pipeline(config, 1, replication++);
        pipeline.run(updates);
        events += pipeline.take_record().events;
    }
    state.counters["events_per_second"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
    state.counters["events_per_run"] = static_cast<double>(events) / static_cast<double>(state.iterations());
}

void hundred_updates_1024_slots_queue(benchmark::State& state) {
    run(state, reference_pipeline(16, 64, transfer_queue), 100);
}
BENCHMARK(hundred_updates_1024_slots_queue)->Unit(benchmark::kMillisecond);

void hundred_updates_1024_slots_buffer(benchmark::State& state) {
    run(state, reference_pipeline(16, 64, replay_buffer), 100);
}
BENCHMARK(hundred_updates_1024_slots_buffer)->Unit(benchmark::kMillisecond);

/// As many servers as slots: they never limit, but the simulation cannot know that.
void hundred_updates_1024_slots_with_servers(benchmark::State& state) {
    PipelineConfig config = reference_pipeline(16, 64, replay_buffer);
    config.reward->servers = 1024;
    run(state, config, 100);
}
BENCHMARK(hundred_updates_1024_slots_with_servers)->Unit(benchmark::kMillisecond);

void thousand_updates_by_slots(benchmark::State& state) {
    run(state, reference_pipeline(state.range(0), 64, replay_buffer), 1000);
}
BENCHMARK(thousand_updates_by_slots)->Arg(1)->Arg(16)->Arg(128)->Unit(benchmark::kMillisecond);

/// Allocations of a long run minus those of a short one, per event: what the steady state allocates.
void allocations_per_event(benchmark::State& state) {
    const PipelineConfig config = reference_pipeline(16, 64, replay_buffer);
    const auto measure = [&](std::int64_t updates, std::uint64_t& events) {
        const std::uint64_t before = allocations();
        Pipeline pipeline(config, 1, 0);
        pipeline.run(updates);
        const std::uint64_t after = allocations();
        events = pipeline.take_record().events;
        return after - before;
    };
    double per_event = 0.0;
    for (auto _ : state) {
        std::uint64_t short_events = 0;
        std::uint64_t long_events = 0;
        const std::uint64_t short_run = measure(200, short_events);
        const std::uint64_t long_run = measure(1000, long_events);
        per_event = static_cast<double>(long_run - short_run) / static_cast<double>(long_events - short_events);
    }
    state.counters["allocations_per_event"] = per_event;
}
BENCHMARK(allocations_per_event)->Unit(benchmark::kMillisecond);

}  // namespace
