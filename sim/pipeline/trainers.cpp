#include "sim/pipeline/trainers.h"

namespace millrace {

Trainers::Trainers(const TrainersConfig& config, std::uint64_t seed, std::uint64_t replication)
    : config_(config), stream_(seed, replication, Purpose::trainer_service) {}

Duration Trainers::service(std::int64_t version, std::int64_t batch_tokens) const {
    const auto trainers = static_cast<double>(config_.count);
    if (const auto* fixed = std::get_if<FixedTrainerService>(&config_.service)) {
        Draw draw(stream_, static_cast<std::uint64_t>(version));
        return duration_from_seconds(fixed->gpu_s_per_update.sample(draw) / trainers);
    }
    if (const auto* split = std::get_if<SplitTrainerService>(&config_.service)) {
        return duration_from_seconds(split->parallel_s / trainers + split->serial_s);
    }
    const auto& per_token = std::get<PerTokenTrainerService>(config_.service);
    return duration_from_seconds(per_token.gpu_s_per_token * static_cast<double>(batch_tokens) / trainers +
                                 per_token.base_s);
}

}  // namespace millrace
