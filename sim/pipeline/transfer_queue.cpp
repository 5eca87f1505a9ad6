#include "sim/pipeline/transfer_queue.h"

#include <stdexcept>

namespace millrace {

TransferQueue::TransferQueue(const TransferQueueConfig& config, std::int64_t batch)
    : order_(config.order),
      overflow_(config.overflow),
      batch_(batch),
      waiting_(static_cast<std::size_t>(config.capacity)) {}

bool TransferQueue::has_room(std::int64_t rollouts) const {
    return overflow_ == Overflow::drop_oldest || size() + rollouts <= static_cast<std::int64_t>(waiting_.capacity());
}

void TransferQueue::put(std::span<const RolloutIndex> rollouts, std::vector<RolloutIndex>& removed) {
    for (const RolloutIndex rollout : rollouts) {
        if (waiting_.full()) {
            removed.push_back(waiting_.pop_front());
        }
        waiting_.push_back(rollout);
    }
}

void TransferQueue::draw_batch(std::int64_t /*version*/, std::vector<RolloutIndex>& batch,
                               std::vector<RolloutIndex>& consumed) {
    for (std::int64_t i = 0; i < batch_; ++i) {
        const RolloutIndex rollout = order_ == QueueOrder::fifo ? waiting_.pop_front() : waiting_.pop_back();
        batch.push_back(rollout);
        consumed.push_back(rollout);
    }
}

OrderedTransferQueue::OrderedTransferQueue(const TransferQueueConfig& config, std::int64_t batch,
                                           const RolloutPool& pool)
    : pool_(pool), batch_(batch), places_(static_cast<std::size_t>(config.capacity), absent) {}

bool OrderedTransferQueue::has_room(std::int64_t rollouts) const {
    return size_ + rollouts <= static_cast<std::int64_t>(places_.size());
}

void OrderedTransferQueue::put(std::span<const RolloutIndex> rollouts, std::vector<RolloutIndex>& /*removed*/) {
    for (const RolloutIndex rollout : rollouts) {
        RolloutIndex& here = place(pool_[rollout].id);
        if (here != absent) {
            throw std::logic_error("a transfer queue in starting order was given more rollouts than it has places for");
        }
        here = rollout;
        ++size_;
    }
    while (in_sequence_ < size_ && place(next_id_ + static_cast<std::uint64_t>(in_sequence_)) != absent) {
        ++in_sequence_;
    }
}

void OrderedTransferQueue::draw_batch(std::int64_t /*version*/, std::vector<RolloutIndex>& batch,
                                      std::vector<RolloutIndex>& consumed) {
    for (std::int64_t i = 0; i < batch_; ++i) {
        RolloutIndex& here = place(next_id_++);
        batch.push_back(here);
        consumed.push_back(here);
        here = absent;
    }
    in_sequence_ -= batch_;
    size_ -= batch_;
}

}  // namespace millrace
