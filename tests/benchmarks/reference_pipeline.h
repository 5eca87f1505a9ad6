// The pipeline that benchmarks simulate.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/pipeline/config.h"

namespace millrace_test {

/// W slots, batch 512, a reward stage, lognormal rollouts, weight synchronisation, as many rollouts made as used.
inline millrace::PipelineConfig reference_pipeline(std::int64_t workers, std::int64_t slots,
                                                   const millrace::StoreConfig& store) {
    using namespace millrace;
    PipelineConfig config;
    config.workers.count = workers;
    config.workers.slots = slots;
    config.workers.service = StepService{5e-3, 1e-4, 1e-8, 1e-5, std::nullopt};
    config.workers.length = Distribution::lognormal(1000.0, 0.5);
    config.groups.size = 8;
    config.reward = RewardConfig{Distribution::uniform(0.5, 1.5), std::nullopt, 0.5};
    config.trainers.batch = 512;
    // The workers make about 85 rollouts a second; the trainers can just use them.
    config.trainers.service =
        FixedTrainerService{Distribution::constant(512.0 * 1000.0 * 0.0117 / static_cast<double>(workers * slots))};
    config.store = store;
    config.weight_sync.transfer_s = Distribution::constant(1.0);
    config.noise = NoiseConfig{FloorGrowthNoise{1.0, 0.1, 1.0}, 0.1};
    return config;
}

inline const millrace::StoreConfig transfer_queue =
    millrace::TransferQueueConfig{.capacity = 1024, .overflow = millrace::Overflow::drop_oldest};
inline const millrace::StoreConfig replay_buffer = millrace::ReplayBufferConfig{.capacity = 2048};

}  // namespace millrace_test
