// The transfer queue of a pipeline without a buffer: every rollout is used once and is gone (paper section 1).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/pipeline/config.h"
#include "sim/pipeline/ring.h"
#include "sim/pipeline/store.h"

namespace millrace {

/// Hands out rollouts by when they came in: the oldest or the freshest first.
class TransferQueue final : public Store {
   public:
    TransferQueue(const TransferQueueConfig& config, std::int64_t batch);

    bool has_room(std::int64_t rollouts) const override;
    void put(std::span<const RolloutIndex> rollouts, std::vector<RolloutIndex>& removed) override;
    bool can_fill_batch() const override { return size() >= batch_; }
    void draw_batch(std::int64_t version, std::vector<RolloutIndex>& batch,
                    std::vector<RolloutIndex>& consumed) override;
    std::int64_t size() const override { return static_cast<std::int64_t>(waiting_.size()); }

   private:
    QueueOrder order_;
    Overflow overflow_;
    std::int64_t batch_;
    Ring<RolloutIndex> waiting_;
};

/// Hands out rollouts in the order in which they were started, whenever they came in. Requires that no rollout enters
/// that was started `capacity` or more after the oldest one that has not been handed out.
class OrderedTransferQueue final : public Store {
   public:
    OrderedTransferQueue(const TransferQueueConfig& config, std::int64_t batch, const RolloutPool& pool);

    bool has_room(std::int64_t rollouts) const override;
    void put(std::span<const RolloutIndex> rollouts, std::vector<RolloutIndex>& removed) override;
    bool can_fill_batch() const override { return in_sequence_ >= batch_; }
    void draw_batch(std::int64_t version, std::vector<RolloutIndex>& batch,
                    std::vector<RolloutIndex>& consumed) override;
    std::int64_t size() const override { return size_; }

   private:
    static constexpr RolloutIndex absent = ~RolloutIndex{0};
    RolloutIndex& place(std::uint64_t id) { return places_[id % places_.size()]; }

    const RolloutPool& pool_;
    std::int64_t batch_;
    std::vector<RolloutIndex> places_;  ///< by rollout id modulo the capacity
    std::uint64_t next_id_ = 0;         ///< the oldest rollout that has not been handed out
    std::int64_t in_sequence_ = 0;      ///< how many from next_id_ on are here without a gap
    std::int64_t size_ = 0;
};

}  // namespace millrace
