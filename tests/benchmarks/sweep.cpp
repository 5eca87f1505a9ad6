// Whole sweeps: designs simulated, rows written to disk, from the first block to the last.
//
// Floor: a replication of the reference pipeline is 100 updates of 512 rollouts, 51,200 of these at 105 ns
// (pipeline.cpp) are 5.4 ms. A row of 20 replications is 20 kB of text: 40 metrics x 20 numbers at some 150 ns each for
// formatting, 0.12 ms a block or 0.006 ms a replication, and one write(). Prediction: nothing but the simulation
// counts; 1,000 designs x 20 replications take 110 to 150 CPU-seconds, as the machine has a good or a bad hour, and two
// threads on two cores are 1.9 times as fast as one. Measured, on two cores: 5.8 to 6.3 ms of CPU a replication, 115
// (from a fortieth of it) to 126 CPU-seconds for the whole; the sweep itself costs 1 to 5 % beside that; two threads
// are 1.92 to 2.0 times as fast as one.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "sim/pipeline/pipeline.h"
#include "sim/sweep/sweep_runner.h"
#include "tests/benchmarks/reference_pipeline.h"

namespace {

using namespace millrace;
using namespace millrace_test;

constexpr std::int64_t replications = 20;
constexpr std::int64_t all_designs = 1000;

/// The reference pipeline with other buffer sizes, transfer times and spreads of length; all take about as long.
Sweep reference_sweep(std::int64_t designs) {
    Sweep sweep;
    sweep.objectives = {{"compute/gamma_simulated", true}, {"staleness/mean", true}};
    sweep.replications = {replications, replications, 0};
    for (std::int64_t i = 0; i < designs; ++i) {
        const std::int64_t number = i * all_designs / designs;  // few designs are spread over all
        Design design;
        design.id = std::to_string(1'000'000'000'000'000 + number);
        design.scenario.emplace();
        design.scenario->horizon = {.updates = 100, .warmup_updates = 20, .units = std::nullopt};
        PipelineConfig& config = design.scenario->pipeline;
        config = reference_pipeline(16, 64, ReplayBufferConfig{.capacity = 1024 + 128 * (number % 20)});
        config.weight_sync.transfer_s = Distribution::constant(0.2 * static_cast<double>(1 + number / 20 % 10));
        config.workers.length = Distribution::lognormal(1000.0, 0.3 + 0.1 * static_cast<double>(number / 200));
        sweep.designs.push_back(std::move(design));
    }
    return sweep;
}

struct Taken {
    double wall_s = 0.0;
    double cpu_s = 0.0;  ///< of all threads
};

/// Of all threads of this process.
double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Taken run(const Sweep& sweep, std::int64_t jobs) {
    std::string folder = (std::filesystem::temp_directory_path() / "millrace-sweep-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) {
        throw std::runtime_error("no folder for temporary files");
    }
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    const SweepOutcome outcome = run_sweep(sweep, folder, {.jobs = jobs});
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    const Taken taken{wall.count(), cpu_seconds() - cpu};
    std::filesystem::remove_all(folder);
    if (outcome.replications != static_cast<std::int64_t>(sweep.designs.size()) * replications) {
        throw std::runtime_error("the sweep was not complete");
    }
    return taken;
}

/// CPU-seconds of the same replications, simulated one after the other and forgotten.
double simulation_alone_s(const Sweep& sweep) {
    const double start = cpu_seconds();
    for (const Design& design : sweep.designs) {
        for (std::int64_t r = 0; r < replications; ++r) {
            Pipeline pipeline(design.scenario->pipeline, design.scenario->seed, static_cast<std::uint64_t>(r));
            pipeline.run(design.scenario->horizon.updates, *design.scenario->horizon.warmup_updates);
            benchmark::DoNotOptimize(pipeline.take_record());
        }
    }
    return cpu_seconds() - start;
}

/// ratio: the simulation alone over the sweep; 1 would be a sweep that costs nothing itself.
void sweep_over_simulation(benchmark::State& state) {
    double sweep_s = 0.0;
    double alone_s = 0.0;
    for (auto _ : state) {
        for (std::int64_t slice = 0; slice < 5; ++slice) {  // interleaved: the machine's hour changes
            const Sweep sweep = reference_sweep(2);
            sweep_s += run(sweep, 1).cpu_s;
            alone_s += simulation_alone_s(sweep);
        }
    }
    state.counters["ratio"] = alone_s / sweep_s;
}
BENCHMARK(sweep_over_simulation)->Iterations(1)->Unit(benchmark::kSecond)->UseRealTime();

/// A fortieth of the sweep, and from it the whole. MILLRACE_WHOLE_SWEEP=1 runs all of it.
void sweep_of_1000_designs(benchmark::State& state) {
    const bool whole = std::getenv("MILLRACE_WHOLE_SWEEP") != nullptr;
    const Sweep sweep = reference_sweep(whole ? all_designs : all_designs / 40);
    double cpu_s = 0.0;
    for (auto _ : state) {
        cpu_s += run(sweep, 2).cpu_s;
    }
    const double runs = static_cast<double>(state.iterations()) * static_cast<double>(sweep.designs.size()) *
                        static_cast<double>(replications);
    state.counters["cpu_ms_per_replication"] = 1e3 * cpu_s / runs;
    state.counters["cpu_s_of_1000_designs"] = cpu_s / runs * static_cast<double>(all_designs * replications);
}
BENCHMARK(sweep_of_1000_designs)->Iterations(1)->Unit(benchmark::kSecond)->UseRealTime();

/// ratio: how many times faster the sweep is with so many threads than with one.
void sweep_by_jobs(benchmark::State& state) {
    const Sweep sweep = reference_sweep(8);
    double one_s = 0.0;
    double several_s = 0.0;
    for (auto _ : state) {
        one_s += run(sweep, 1).wall_s;
        several_s += run(sweep, state.range(0)).wall_s;
    }
    state.counters["ratio"] = one_s / several_s;
}
BENCHMARK(sweep_by_jobs)->Arg(2)->Arg(4)->Iterations(2)->Unit(benchmark::kSecond)->UseRealTime();

}  // namespace
