// Whole pipelines, with everything recorded: time per run, events per second, allocations per event.
//
// Floor: an event of the reference pipeline moves one rollout through one station. Its parts measured alone: pop and
// schedule 40 ns, length draw 25 ns, heap of a worker's batch 20 ns, five changes of station 10 ns, its share of a
// batch's bookkeeping 5 ns; at two events per rollout about 55 ns an event. Prediction: 10 to 18 million events per
// second. Measured: 9 to 11 in a fast hour of the machine, half of that in a slow one. An event takes some 1,000
// instructions, spread evenly; what counts is how many of them wait for each other. Drawing lengths and latencies in
// blocks gave more than a tenth of the time, while cutting as many instructions elsewhere gave little.
//
// Without a limit of reward servers the end of a grading is known when it begins, so a group takes one event and not
// one per member: 1.1 events per rollout. Prediction: 0.9 x (40 + 10) of some 200 ns per rollout saved, a quarter of
// the time; measured, a quarter, with fewer and dearer events. With_servers has the same work one event at a time.
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
