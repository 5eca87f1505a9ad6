#include "sim/pipeline/replay_buffer.h"

#include <algorithm>
#include <utility>

namespace millrace {

// ---- one shard ----------------------------------------------------------------------------------------------------

BufferShard::BufferShard(const ShardShape& shape, Sampling sampling, RandomStream stream)
    : shape_(shape),
      sampling_(sampling),
      stream_(stream),
      freshest_(static_cast<std::size_t>(shape.capacity - shape.positives)),
      positives_(static_cast<std::size_t>(shape.positives)) {
    positions_.reserve(static_cast<std::size_t>(shape.capacity));
    never_used_.reserve(static_cast<std::size_t>(shape.capacity));
}

void BufferShard::put(const RolloutPool& pool, RolloutIndex rollout, std::vector<RolloutIndex>& removed) {
    if (freshest_.full()) {
        const RolloutIndex leaving = freshest_.pop_front();
        if (positives_.capacity() > 0 && pool[leaving].correct) {
            if (positives_.full()) {
                removed.push_back(positives_.pop_front());
            }
            positives_.push_back(leaving);
        } else {
            removed.push_back(leaving);
        }
    }
    freshest_.push_back(rollout);
}

bool BufferShard::can_fill_batch() const {
    if (sampling_ == Sampling::uniform_with_replacement) {
        // A full shard smaller than the batch will do: with replacement it repeats.
        return size() >= std::min(shape_.batch, shape_.capacity - shape_.positives);
    }
    return size() >= shape_.batch;
}

void BufferShard::draw_batch(const RolloutPool& pool, std::int64_t version, std::vector<RolloutIndex>& batch) {
    Draw draw(stream_, static_cast<std::uint64_t>(version));
    const auto count = static_cast<std::size_t>(shape_.batch);
    const auto present = static_cast<std::size_t>(size());
    switch (sampling_) {
        case Sampling::uniform_with_replacement:
            for (std::size_t i = 0; i < count; ++i) {
                batch.push_back(at(draw.below(present)));
            }
            return;
        case Sampling::uniform_without_replacement:
            while (positions_.size() < present) {
                positions_.push_back(static_cast<std::uint32_t>(positions_.size()));
            }
            draw_without_replacement(draw, positions_, count, batch);
            return;
        case Sampling::never_used_first:
            positions_.clear();
            never_used_.clear();
            for (std::uint32_t position = 0; position < present; ++position) {
                (pool[at(position)].uses == 0 ? never_used_ : positions_).push_back(position);
            }
            const std::size_t fresh = std::min(never_used_.size(), count);
            draw_without_replacement(draw, never_used_, fresh, batch);
            draw_without_replacement(draw, positions_, count - fresh, batch);
            return;
    }
}

void BufferShard::draw_without_replacement(Draw& draw, std::vector<std::uint32_t>& positions, std::size_t count,
                                           std::vector<RolloutIndex>& batch) {
    for (std::size_t i = 0; i < count; ++i) {
        std::swap(positions[i], positions[i + draw.below(positions.size() - i)]);
        batch.push_back(at(positions[i]));
    }
}

// ---- the buffer ---------------------------------------------------------------------------------------------------

ReplayBuffer::ReplayBuffer(const ReplayBufferConfig& config, std::int64_t batch, std::int64_t trainers,
                           const RolloutPool& pool, std::uint64_t seed, std::uint64_t replication)
    : pool_(pool) {
    const std::int64_t shards = config.sharded ? trainers : 1;
    const std::int64_t capacity = config.capacity / shards;
    const ShardShape shape{capacity, positive_places(capacity, config.positive_bias_delta), batch / shards};
    for (std::int64_t shard = 0; shard < shards; ++shard) {
        const RandomStream stream(seed, replication, Purpose::batch_sampling, static_cast<std::uint64_t>(shard));
        shards_.emplace_back(shape, config.sampling, stream);
    }
}

void ReplayBuffer::put(std::span<const RolloutIndex> rollouts, std::vector<RolloutIndex>& removed) {
    for (const RolloutIndex rollout : rollouts) {
        shards_[next_shard_].put(pool_, rollout, removed);
        next_shard_ = next_shard_ + 1 == shards_.size() ? 0 : next_shard_ + 1;
    }
}

bool ReplayBuffer::can_fill_batch() const {
    return std::all_of(shards_.begin(), shards_.end(), [](const BufferShard& s) { return s.can_fill_batch(); });
}

void ReplayBuffer::draw_batch(std::int64_t version, std::vector<RolloutIndex>& batch,
                              std::vector<RolloutIndex>& /*consumed*/) {
    for (BufferShard& shard : shards_) {
        shard.draw_batch(pool_, version, batch);
    }
}

std::int64_t ReplayBuffer::size() const {
    std::int64_t size = 0;
    for (const BufferShard& shard : shards_) {
        size += shard.size();
    }
    return size;
}

}  // namespace millrace
