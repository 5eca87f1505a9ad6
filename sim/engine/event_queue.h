// The event set: everything that is going to happen, in the order in which it will.
//
// Events are small typed records; whoever pops one switches on its kind. The set is a heap of 16-byte keys
// (key_heap.h) with the payloads in a slab beside it, a first-in first-out ring in front for events scheduled at the
// current time, and a tournament (key_tournament.h) of timers, which are set again and again. Nothing is allocated per
// event once the arrays have grown (or were reserved).
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/key_heap.h"
#include "sim/engine/key_tournament.h"
#include "sim/engine/time.h"

namespace millrace {

/// What happens. The meaning of `kind`, `entity` and `argument` belongs to the pipeline.
struct Event {
    std::uint32_t kind = 0;
    std::uint32_t entity = 0;
    std::uint64_t argument = 0;
};

/// Names one scheduled event, for cancelling. The default value names none.
struct EventHandle {
    std::uint64_t id = 0;

    friend bool operator==(EventHandle, EventHandle) = default;
};

/// schedule() and pop() are inlined always: as calls they would cost a tenth more.
class EventQueue {
   public:
    static constexpr std::uint64_t sequence_limit = std::uint64_t{1} << 40;  ///< events in one run
    static constexpr std::uint32_t slot_limit = (1u << 24) - 1;              ///< events pending at once

    /// The arguments let a test start just below a limit, and a model bound its pending events.
    explicit EventQueue(std::uint64_t first_sequence = 1, std::uint32_t max_pending = slot_limit)
        : first_sequence_(first_sequence), sequence_(first_sequence), max_pending_(max_pending) {
        assert(first_sequence > 0 && max_pending <= slot_limit);
        reserve(12);
    }

    /// Makes room for `n` pending events.
    void reserve(std::size_t n);

    /// Throws std::logic_error for a time before now(), std::overflow_error when 2^40 events were scheduled,
    /// std::length_error when too many are pending.
    [[gnu::always_inline]] EventHandle schedule(Time time, Event event) {
        if (time <= now_) {
            if (time < now_) [[unlikely]] {
                refuse_past();
            }
            const std::uint64_t id = store(event);
            push_now(id);
            return {id};
        }
        const std::uint64_t id = store(event);
        // Payloads about to be needed are fetched while the heap is still being mended.
        heap_.push(key(time, id), [this](KeyHeap::Key soon) {
            __builtin_prefetch(&slab_[static_cast<std::size_t>(soon & slot_mask)]);
        });
        return {id};
    }

    /// Makes timers 0 to n - 1, stopped; when one goes off that is an event of this kind, with its number as entity. To
    /// be called once.
    void make_timers(std::size_t n, std::uint32_t kind) {
        assert(n > 0 && n <= slot_limit && timers_.top() == timers_.never);
        timers_ = KeyTournament<KeyHeap::Key>(n);
        timer_kind_ = kind;
    }

    /// The timer goes off at `time`, and not when it was going to. Its place in the order is that of an event scheduled
    /// now, and so are the errors (there is always room); it takes half the time. For what happens to the same few
    /// again and again.
    [[gnu::always_inline]] void set_timer(std::uint32_t timer, Time time) {
        if (time < now_) [[unlikely]] {
            refuse_past();
        }
        if (sequence_ == sequence_limit) [[unlikely]] {
            refuse_more();
        }
        cancelled_ += timers_.key(timer) != timers_.never ? 1 : 0;
        timers_.put(timer, key(time, sequence_++ << slot_bits | timer));
    }
    void stop_timer(std::uint32_t timer) {
        if (timers_.key(timer) != timers_.never) {
            ++cancelled_;
            timers_.remove(timer);
        }
    }

    /// Takes the event out; false when it has already happened or was cancelled. The key stays where it is and is
    /// skipped when it comes up (or swept out when such keys are the majority).
    bool cancel(EventHandle handle) {
        const auto slot = static_cast<std::size_t>(handle.id & slot_mask);
        if (handle.id >> slot_bits == 0 || slot >= slab_.size() || slab_[slot].id != handle.id) {
            return false;
        }
        release(slot);
        ++cancelled_;
        if (const std::size_t keys = heap_.size() + (ring_tail_ - ring_head_); keys > 2 * size() + 64) {
            sweep();
        }
        return true;
    }

    /// Removes the next event and moves the clock to it. False, with the clock unchanged, when there is none.
    [[gnu::always_inline]] bool pop(Event& event) {
        for (;;) {
            const KeyHeap::Key first = heap_.top();
            // Keys in the heap for the current time were scheduled before the clock got here, those in the ring after.
            const bool from_ring = ring_head_ != ring_tail_ &&
                                   (first >> 64 != static_cast<KeyHeap::Key>(now_.ns) || first == KeyHeap::never);
            // A timer may have been set before or after either.
            if (const KeyHeap::Key timer = timers_.top();
                timer < (from_ring ? key(now_, ring_[ring_head_ & ring_mask_]) : first)) {
                take_timer(timer, event);
                return true;
            }
            std::uint64_t id;
            Time time = now_;
            if (from_ring) {
                id = ring_[ring_head_++ & ring_mask_];
            } else if (first != KeyHeap::never) {
                id = static_cast<std::uint64_t>(first);
                time.ns = static_cast<std::int64_t>(first >> 64);
                heap_.pop();
            } else {
                return false;
            }
            const auto slot = static_cast<std::size_t>(id & slot_mask);
            if (slab_[slot].id == id) [[likely]] {
                event = slab_[slot].event;
                release(slot);
                happened(time, id, event.kind);
                return true;
            }
        }
    }

    Time now() const { return now_; }
    /// Events that will still happen; cancelled ones do not count.
    std::size_t size() const { return static_cast<std::size_t>(sequence_ - first_sequence_ - popped_ - cancelled_); }
    bool empty() const { return size() == 0; }
    /// Events that have happened.
    std::uint64_t popped() const { return popped_; }
    /// Fingerprint of the time, sequence and kind of every event that has happened, in order:
    /// digest = rotate_left((digest ^ time) * 0x9E3779B97F4A7C15, 29) ^ (kind * 2^40 + sequence).
    std::uint64_t digest() const { return digest_; }

   private:
    // ORDERING RULE. Time in the high 64 bits (never negative), below it the 40-bit scheduling sequence, below that
    // the 24-bit slab slot or number of the timer. Comparing keys as integers compares (time, sequence): earlier first,
    // and at equal times the one scheduled first. The sequence is unique, so the rest never decides, nor any address.
    static constexpr int slot_bits = 24;
    static constexpr std::uint64_t slot_mask = (std::uint64_t{1} << slot_bits) - 1;

    static constexpr std::uint64_t no_slot = slot_limit;

    // `id` is the low half of the key while the slot is taken: it identifies handles and keys that outlived their
    // event. While the slot is free it is the number of the next free slot, below any taken id.
    struct alignas(32) Slot {  // never across two cache lines
        Event event;
        std::uint64_t id;
    };

    [[gnu::always_inline]] void take_timer(KeyHeap::Key key, Event& event) {
        const auto timer = static_cast<std::uint32_t>(key & slot_mask);
        timers_.remove_top(timer);
        event = {timer_kind_, timer, 0};
        happened({static_cast<std::int64_t>(key >> 64)}, static_cast<std::uint64_t>(key), timer_kind_);
    }

    [[gnu::always_inline]] void happened(Time time, std::uint64_t id, std::uint32_t kind) {
        now_ = time;
        ++popped_;
        digest_ = std::rotl((digest_ ^ static_cast<std::uint64_t>(time.ns)) * 0x9E3779B97F4A7C15u, 29) ^
                  (std::uint64_t{kind} << 40 | id >> slot_bits);
    }

    static KeyHeap::Key key(Time time, std::uint64_t id) {
        return KeyHeap::Key{static_cast<std::uint64_t>(time.ns)} << 64 | id;
    }

    std::uint64_t store(Event event) {
        if (sequence_ == sequence_limit) [[unlikely]] {
            refuse_more();
        }
        if (first_free_ == no_slot) [[unlikely]] {
            grow_slab(2 * slab_.size());
        }
        const std::uint64_t slot = first_free_;
        first_free_ = slab_[slot].id;
        const std::uint64_t id = sequence_++ << slot_bits | slot;
        slab_[slot] = {event, id};
        return id;
    }

    void release(std::size_t slot) {
        slab_[slot].id = first_free_;
        first_free_ = slot;
    }

    void push_now(std::uint64_t id) {
        if (ring_tail_ - ring_head_ > ring_mask_) [[unlikely]] {
            grow_ring(2 * ring_.size());
        }
        ring_[ring_tail_++ & ring_mask_] = id;
    }

    [[noreturn]] static void refuse_past();
    [[noreturn]] static void refuse_more();
    void grow_ring(std::size_t n);
    void grow_slab(std::size_t n);
    void sweep();

    Time now_;
    std::uint64_t first_sequence_;
    std::uint64_t sequence_;
    std::uint64_t popped_ = 0;
    std::uint64_t cancelled_ = 0;
    std::uint64_t digest_ = 0;

    KeyHeap heap_;
    std::vector<Slot> slab_;
    std::uint64_t first_free_ = no_slot;
    std::uint32_t max_pending_;

    KeyTournament<KeyHeap::Key> timers_{0};
    std::uint32_t timer_kind_ = 0;

    std::vector<std::uint64_t> ring_;  // ids; a power of two of them, positions taken modulo its size
    std::uint64_t ring_head_ = 0;
    std::uint64_t ring_tail_ = 0;
    std::uint64_t ring_mask_ = 0;
};

}  // namespace millrace
