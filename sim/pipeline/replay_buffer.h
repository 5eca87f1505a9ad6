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

    /// Adds a rollout as the freshest; appends what it pushed out to `removed`. The shard never shrinks.
    void put(const RolloutPool& pool, RolloutIndex rollout, std::vector<RolloutIndex>& removed);
    bool can_fill_batch() const;
    void draw_batch(const RolloutPool& pool, std::int64_t version, std::vector<RolloutIndex>& batch);
    std::int64_t size() const { return static_cast<std::int64_t>(freshest_.size() + positives_.size()); }

   private:
    RolloutIndex at(std::size_t position) const {
        return position < freshest_.size() ? freshest_[position] : positives_[position - freshest_.size()];
    }
    void draw_without_replacement(Draw& draw, std::vector<std::uint32_t>& positions, std::size_t count,
                                  std::vector<RolloutIndex>& batch);

    ShardShape shape_;
    Sampling sampling_;
    RandomStream stream_;
    Ring<RolloutIndex> freshest_;
    Ring<RolloutIndex> positives_;  ///< correct ones that are no longer among the freshest
    /// Positions to draw from without replacement, in the order that earlier draws left them in: every order will do.
    std::vector<std::uint32_t> positions_;
    std::vector<std::uint32_t> never_used_;
};

class ReplayBuffer final : public Store {
   public:
    /// `trainers` shards when the configuration says sharded, else one. Capacity and batch must divide evenly.
    ReplayBuffer(const ReplayBufferConfig& config, std::int64_t batch, std::int64_t trainers, const RolloutPool& pool,
                 std::uint64_t seed, std::uint64_t replication);

    bool has_room(std::int64_t /*rollouts*/) const override { return true; }
    /// Shards take turns, rollout by rollout, so they stay balanced.
    void put(std::span<const RolloutIndex> rollouts, std::vector<RolloutIndex>& removed) override;
    bool can_fill_batch() const override;
    void draw_batch(std::int64_t version, std::vector<RolloutIndex>& batch,
                    std::vector<RolloutIndex>& consumed) override;
    std::int64_t size() const override;

   private:
    const RolloutPool& pool_;
    std::vector<BufferShard> shards_;
    std::size_t next_shard_ = 0;
};

}  // namespace millrace
