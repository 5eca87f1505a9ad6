#include "sim/engine/event_queue.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace millrace {

void EventQueue::reserve(std::size_t n) {
    n = std::min<std::size_t>(n, max_pending_);
    heap_.reserve(n);
    if (n > ring_.size()) {
        grow_ring(n);
    }
    if (n > slab_.size()) {
        grow_slab(n);
    }
}

void EventQueue::refuse_past() {
    throw std::logic_error("an event was scheduled in the past");
}

void EventQueue::refuse_more() {
    throw std::overflow_error("the event queue has used up its 2^40 sequence numbers");
}

void EventQueue::grow_ring(std::size_t n) {
    std::vector<std::uint64_t> wider(std::bit_ceil(n));
    for (std::uint64_t i = ring_head_; i != ring_tail_; ++i) {
        wider[i & (wider.size() - 1)] = ring_[i & ring_mask_];
    }
    ring_.swap(wider);
    ring_mask_ = ring_.size() - 1;
}

void EventQueue::grow_slab(std::size_t n) {
    n = std::min<std::size_t>(n, max_pending_);
    const std::size_t old_size = slab_.size();
    if (n <= old_size) {
        throw std::length_error("more than " + std::to_string(max_pending_) + " events are pending at once");
    }
    // The new slots go to the front of the free list, in ascending order.
    slab_.resize(n);
    for (std::size_t slot = n; slot-- > old_size;) {
        release(slot);
    }
}

// Drops the keys of cancelled events. Costs a few nanoseconds per key and halves their number at least, so each
// cancelled event pays for it once.
void EventQueue::sweep() {
    const auto is_live = [this](std::uint64_t id) { return slab_[id & slot_mask].id == id; };
    heap_.remove_if([&](KeyHeap::Key key) { return !is_live(static_cast<std::uint64_t>(key)); });

    std::uint64_t tail = ring_head_;
    for (std::uint64_t i = ring_head_; i != ring_tail_; ++i) {
        const std::uint64_t id = ring_[i & ring_mask_];
        if (is_live(id)) {
            ring_[tail++ & ring_mask_] = id;
        }
    }
    ring_tail_ = tail;
}

}  // namespace millrace
