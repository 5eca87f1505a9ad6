#include "sim/pipeline/replay_buffer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace millrace {

std::int64_t positive_places(std::int64_t capacity, double delta) {
    return static_cast<std::int64_t>(std::floor(delta * static_cast<double>(capacity) + 0.5));
}

// ---- one shard ----------------------------------------------------------------------------------------------------

BufferShard::BufferShard(const ShardShape& shape, Sampling sampling, RandomStream stream)
    : shape_(shape),
      sampling_(sampling),
      stream_(stream),
      freshest_(static_cast<std::size_t>(shape.capacity - shape.positives)),
      positives_(static_cast<std::size_t>(shape.positives)) {
    items_.reserve(static_cast<std::size_t>(shape.capacity) + 1);
}

void BufferShard::put(RolloutPool& pool, RolloutIndex rollout, std::vector<RolloutIndex>& removed) {
    if (freshest_.full()) {
        RolloutIndex leaving = freshest_.pop_front();
        bool stays = pool[leaving].correct && positives_.capacity() > 0;
        if (stays) {
            if (positives_.full()) {
                const RolloutIndex oldest = positives_.pop_front();
                positives_.push_back(leaving);
                leaving = oldest;
                stays = false;
            } else {
                positives_.push_back(leaving);
            }
        }
        if (!stays) {
            erase(pool, leaving);
            removed.push_back(leaving);
        }
    }
    freshest_.push_back(rollout);
    insert(pool, rollout);
}

bool BufferShard::can_fill_batch() const {
    if (sampling_ == Sampling::uniform_with_replacement) {
        // A full shard smaller than the batch will do: with replacement it repeats.
        return size() >= std::min(shape_.batch, shape_.capacity - shape_.positives);
    }
    return size() >= shape_.batch;
}

void BufferShard::draw_batch(RolloutPool& pool, std::int64_t version, std::vector<RolloutIndex>& batch) {
    Draw draw(stream_, static_cast<std::uint64_t>(version));
    const auto count = static_cast<std::size_t>(shape_.batch);
    switch (sampling_) {
        case Sampling::uniform_with_replacement:
            for (std::size_t i = 0; i < count; ++i) {
                batch.push_back(items_[draw.below(items_.size())]);
            }
            return;
        case Sampling::uniform_without_replacement:
            shuffle_to_front(pool, draw, 0, items_.size(), count);
            batch.insert(batch.end(), items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(count));
            return;
        case Sampling::never_used_first: {
            const std::size_t fresh = std::min(never_used_, count);
            shuffle_to_front(pool, draw, 0, never_used_, fresh);
            shuffle_to_front(pool, draw, never_used_, items_.size(), count - fresh);
            const auto used = items_.begin() + static_cast<std::ptrdiff_t>(never_used_);
            batch.insert(batch.end(), items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(fresh));
            batch.insert(batch.end(), used, used + static_cast<std::ptrdiff_t>(count - fresh));
            // The fresh ones change sides; from the last one on, so that the ones still to move stay where they are.
            for (std::size_t i = fresh; i-- > 0;) {
                exchange(pool, i, --never_used_);
            }
            return;
        }
    }
}

void BufferShard::insert(RolloutPool& pool, RolloutIndex rollout) {
    pool[rollout].store_position = static_cast<std::uint32_t>(items_.size());
    items_.push_back(rollout);
    if (sampling_ == Sampling::never_used_first) {
        exchange(pool, items_.size() - 1, never_used_++);
    }
}

void BufferShard::erase(RolloutPool& pool, RolloutIndex rollout) {
    std::size_t hole = pool[rollout].store_position;
    assert(items_[hole] == rollout);
    if (sampling_ == Sampling::never_used_first && hole < never_used_) {
        exchange(pool, hole, --never_used_);
        hole = never_used_;
    }
    exchange(pool, hole, items_.size() - 1);
    items_.pop_back();
}

void BufferShard::exchange(RolloutPool& pool, std::size_t a, std::size_t b) {
    std::swap(items_[a], items_[b]);
    pool[items_[a]].store_position = static_cast<std::uint32_t>(a);
    pool[items_[b]].store_position = static_cast<std::uint32_t>(b);
}

void BufferShard::shuffle_to_front(RolloutPool& pool, Draw& draw, std::size_t first, std::size_t last,
                                   std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
        exchange(pool, i, i + draw.below(last - i));
    }
}

// ---- the buffer ---------------------------------------------------------------------------------------------------

ReplayBuffer::ReplayBuffer(const ReplayBufferConfig& config, std::int64_t batch, std::int64_t trainers,
                           RolloutPool& pool, std::uint64_t seed, std::uint64_t replication)
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
