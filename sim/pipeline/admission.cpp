#include "sim/pipeline/admission.h"

namespace millrace {

std::int64_t first_batch(const PipelineConfig& config) {
    std::int64_t needed = config.trainers.batch;
    if (const auto* buffer = std::get_if<ReplayBufferConfig>(&config.store);
        buffer && buffer->sampling == Sampling::uniform_with_replacement) {
        // A shard whose places for the freshest are full will do: with replacement it repeats (replay_buffer.h).
        const std::int64_t shards = buffer->sharded ? config.trainers.count : 1;
        const std::int64_t places = buffer->capacity / shards;
        const std::int64_t freshest = places - positive_places(places, buffer->positive_bias_delta);
        needed = shards * std::min(freshest, config.trainers.batch / shards);
    }
    const std::int64_t size = config.groups.size;
    return (needed + size - 1) / size * size;
}

}  // namespace millrace
