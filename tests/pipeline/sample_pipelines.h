// Pipelines of every kind for property tests: each store, law, policy and way to wait occurs in some of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/pipeline/config.h"

namespace millrace_test {

struct NamedPipeline {
    std::string name;
    millrace::PipelineConfig config;
};

/// The first-order pipeline of the paper at imbalance mu: C = 60 GPU-seconds, batch 60, groups of 4.
inline millrace::PipelineConfig first_order_pipeline(double mu, std::int64_t workers, std::int64_t trainers,
                                                     std::int64_t capacity = 84) {
    using namespace millrace;
    PipelineConfig config;
    config.workers.count = workers;
    config.workers.slots = 8;
    config.workers.service = FirstOrderService{Distribution::lognormal(mu, 0.5)};
    config.groups.size = 4;
    config.trainers.count = trainers;
    config.trainers.batch = 60;
    config.trainers.service = FixedTrainerService{Distribution::constant(60.0)};
    config.store = ReplayBufferConfig{.capacity = capacity};
    config.noise = NoiseConfig{};
    return config;
}

/// The synchronous model of the paper's theory: each update inserts `fresh` rollouts and samples `batch` of `capacity`.
inline millrace::PipelineConfig synchronous_pipeline(std::int64_t batch, std::int64_t fresh, std::int64_t capacity,
                                                     millrace::Sampling sampling) {
    using namespace millrace;
    PipelineConfig config;
    config.workers.count = 2;
    config.workers.slots = fresh;
    config.workers.service = FirstOrderService{Distribution::exponential(1.0)};
    config.trainers.batch = batch;
    config.trainers.service = FixedTrainerService{Distribution::constant(5.0)};
    config.trainers.fresh_per_update = fresh;
    config.store = ReplayBufferConfig{.capacity = capacity, .sampling = sampling};
    config.admission = AdmissionConfig{.steps_ahead = 0, .rollouts_per_update = fresh};
    return config;
}

/// Trainers and a transfer queue fed by `concurrency` slots whose rollouts take one second per length unit, as the
/// closed-form staleness assumes. Lengths are lognormal around a mean of 1,000 tokens of 1 ms.
inline millrace::PipelineConfig transfer_queue_pipeline(std::int64_t concurrency, std::int64_t batch,
                                                        std::int64_t group, double q, double utilization,
                                                        const millrace::Distribution& length) {
    using namespace millrace;
    PipelineConfig config;
    config.workers.count = 1;
    config.workers.slots = concurrency;
    config.workers.service = StepService{1e-3, 0.0, 0.0, 0.0, std::nullopt};
    config.workers.length = length;
    config.groups.size = group;
    config.trainers.batch = batch;
    const double batch_s = static_cast<double>(batch) * length.mean() * 1e-3 / static_cast<double>(concurrency);
    config.trainers.service = FixedTrainerService{Distribution::constant(utilization * batch_s)};
    config.store = TransferQueueConfig{.capacity = static_cast<std::int64_t>(q * static_cast<double>(batch)),
                                       .order = QueueOrder::fifo,
                                       .overflow = Overflow::drop_oldest};
    return config;
}

inline std::vector<NamedPipeline> sample_pipelines() {
    using namespace millrace;
    std::vector<NamedPipeline> samples;
    samples.push_back({"buffer, first-order law", first_order_pipeline(5.28, 5, 3)});

    PipelineConfig config = first_order_pipeline(5.28, 4, 4);
    std::get<ReplayBufferConfig>(config.store).sharded = true;
    std::get<ReplayBufferConfig>(config.store).positive_bias_delta = 0.5;
    config.reward = RewardConfig{Distribution::exponential(0.5), 3, 0.3};
    samples.push_back({"sharded buffer with positive bias behind a reward stage", config});

    config = first_order_pipeline(6.84, 6, 2, 256);
    std::get<ReplayBufferConfig>(config.store).sampling = Sampling::never_used_first;
    config.weight_sync = {.every = 3,
                          .transfer_s = Distribution::uniform(1.0, 20.0),
                          .in_flight = InFlight::in_place,
                          .trainers_wait = true};
    samples.push_back({"buffer, never used first, slow in-place synchronisation", config});

    config = first_order_pipeline(5.28, 6, 2);
    config.store = TransferQueueConfig{.capacity = 64, .order = QueueOrder::lifo};
    samples.push_back({"lifo queue that blocks", config});

    config = first_order_pipeline(2.0, 6, 2);
    config.workers.slots = 1;
    config.store = TransferQueueConfig{.capacity = 64};
    samples.push_back({"fifo queue that blocks one-slot workers", config});

    config = first_order_pipeline(5.28, 7, 1);
    config.store = TransferQueueConfig{.capacity = 120, .overflow = Overflow::drop_oldest};
    config.weight_sync.transfer_s = Distribution::exponential(4.0);
    samples.push_back({"fifo queue that drops", config});

    config = first_order_pipeline(5.28, 6, 2);
    config.store = TransferQueueConfig{.capacity = 120};
    config.admission = AdmissionConfig{.steps_ahead = 0, .rollouts_per_update = 60};
    samples.push_back({"synchronous, on-policy", config});
    config.admission->steps_ahead = 1;
    config.weight_sync.transfer_s = Distribution::constant(2.0);
    samples.push_back({"one step off", config});
    std::get<TransferQueueConfig>(config.store).order = QueueOrder::as_started;
    samples.push_back({"one step off, in starting order", config});

    config = first_order_pipeline(1.0, 3, 2);
    config.workers.slots = 24;
    config.workers.service = StepService{5e-3, 2e-4, 1e-7, 1e-5, 30'000};
    config.workers.length = Distribution::truncated(Distribution::lognormal(800.0, 1.0), 4'000.0, TruncateMode::clip);
    config.workers.prompt_length = Distribution::uniform(50.0, 300.0);
    config.trainers.service = PerTokenTrainerService{2e-4, 1.0};
    config.store = TransferQueueConfig{.capacity = 240, .overflow = Overflow::drop_oldest};
    config.weight_sync = {.transfer_s = Distribution::constant(1.5), .in_flight = InFlight::in_place};
    config.reward = RewardConfig{Distribution::lognormal(1.0, 2.0), std::nullopt, 0.5};
    samples.push_back({"step law under a memory cap", config});
    return samples;
}

}  // namespace millrace_test
