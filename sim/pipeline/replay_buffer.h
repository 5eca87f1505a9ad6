// The replay buffer: the freshest N rollouts, from which every batch is sampled anew (paper sections 1 and 6).
//
// One BufferShard is one trainer's part of it, or all of it when the buffer is shared.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/random.h"
#include "sim/pipeline/config.h"
#include "sim/pipeline/ring.h"
#include "sim/pipeline/store.h"

namespace millrace {

/// How one shard is dimensioned; the sum over shards is the configured buffer.
struct ShardShape {
    std::int64_t capacity = 0;   ///< rollouts, positives included
    std::int64_t positives = 0;  ///< of these, kept for correct rollouts beyond the freshest
    std::int64_t batch = 0;      ///< rollouts drawn from this shard per update
};

class BufferShard {
   public:
    BufferShard(const ShardShape& shape, Sampling sampling, RandomStream stream);

    /// Adds a rollout as the freshest; appends what it pushed out to `removed`.
    void put(RolloutPool& pool, RolloutIndex rollout, std::vector<RolloutIndex>& removed);
    bool can_fill_batch() const;
    void draw_batch(RolloutPool& pool, std::int64_t version, std::vector<RolloutIndex>& batch);
    std::int64_t size() const { return static_cast<std::int64_t>(items_.size()); }

   private:
    void insert(RolloutPool& pool, RolloutIndex rollout);
    void erase(RolloutPool& pool, RolloutIndex rollout);
    void exchange(RolloutPool& pool, std::size_t a, std::size_t b);
    /// Moves `count` items drawn without replacement from items_[first, last) to the front of that range.
    void shuffle_to_front(RolloutPool& pool, Draw& draw, std::size_t first, std::size_t last, std::size_t count);

    ShardShape shape_;
    Sampling sampling_;
    RandomStream stream_;
    Ring<RolloutIndex> freshest_;
    Ring<RolloutIndex> positives_;  ///< correct ones that are no longer among the freshest
    /// Everything in the shard, for sampling by position: the first never_used_ have not been in any batch.
    std::vector<RolloutIndex> items_;
    std::size_t never_used_ = 0;
};

class ReplayBuffer final : public Store {
   public:
    /// `trainers` shards when the configuration says sharded, else one. Capacity and batch must divide evenly.
    ReplayBuffer(const ReplayBufferConfig& config, std::int64_t batch, std::int64_t trainers, RolloutPool& pool,
                 std::uint64_t seed, std::uint64_t replication);

    bool has_room(std::int64_t /*rollouts*/) const override { return true; }
    /// Shards take turns, rollout by rollout, so they stay balanced.
    void put(std::span<const RolloutIndex> rollouts, std::vector<RolloutIndex>& removed) override;
    bool can_fill_batch() const override;
    void draw_batch(std::int64_t version, std::vector<RolloutIndex>& batch,
                    std::vector<RolloutIndex>& consumed) override;
    std::int64_t size() const override;

   private:
    RolloutPool& pool_;
    std::vector<BufferShard> shards_;
    std::size_t next_shard_ = 0;
};

/// How many of `capacity` places positive bias `delta` keeps for correct rollouts: delta N to the nearest whole.
std::int64_t positive_places(std::int64_t capacity, double delta);

}  // namespace millrace
