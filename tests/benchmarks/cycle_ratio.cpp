// What it takes to explain a pipeline by its graph, from the configuration to the critical cycle.
#include <benchmark/benchmark.h>

#include "sim/explain/pipeline_graph.h"

namespace {

using namespace millrace;

/// `batch` rollouts of 30 s on half as many slots, two steps ahead.
PipelineConfig pipeline(std::int64_t batch) {
    PipelineConfig config;
    config.workers.count = batch / 2;
    config.workers.service = FirstOrderService{Distribution::constant(30.0)};
    config.reward = RewardConfig{Distribution::constant(1.0), std::nullopt, 0.5};
    config.trainers.batch = batch;
    config.trainers.service = FixedTrainerService{Distribution::constant(20.0)};
    config.weight_sync.transfer_s = Distribution::constant(3.0);
    config.store = TransferQueueConfig{.capacity = 3 * batch};
    config.admission = AdmissionConfig{2, batch};
    return config;
}

void cycle_ratio_of_rollouts(benchmark::State& state) {
    const PipelineConfig config = pipeline(state.range(0));
    for (auto _ : state) {
        const PipelineGraph graph = rollout_graph(config);
        benchmark::DoNotOptimize(limiting_cycle(graph.graph, graph.update));
    }
}
BENCHMARK(cycle_ratio_of_rollouts)->Arg(64)->Arg(512)->Arg(4096)->Unit(benchmark::kMicrosecond);

void cycle_ratio_of_batches(benchmark::State& state) {
    const PipelineConfig config = pipeline(state.range(0));
    for (auto _ : state) {
        const PipelineGraph graph = batch_graph(config);
        benchmark::DoNotOptimize(limiting_cycle(graph.graph, graph.update));
    }
}
BENCHMARK(cycle_ratio_of_batches)->Arg(512)->Unit(benchmark::kMicrosecond);

}  // namespace
