// A priority queue of 128-bit keys: a bottom-up 4-ary implicit heap.
//
// Keys carry everything that decides their order, and whatever else fits, so that comparing them is all there is to do.
// Four sibling keys are one cache line. Nothing is allocated once the array has grown (or was reserved).
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "sim/engine/random.h"

namespace millrace {

/// Puts arrays on cache-line boundaries.
template <class T>
struct CacheLineAllocator {
    using value_type = T;
    static constexpr std::align_val_t alignment{64};

    CacheLineAllocator() = default;
    template <class U>
    CacheLineAllocator(const CacheLineAllocator<U>&) {}

    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), alignment)); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, alignment); }
    friend bool operator==(CacheLineAllocator, CacheLineAllocator) { return true; }
};

class KeyHeap {
   public:
    using Key = Uint128;
    /// Larger than any key that may be pushed: keys are below 2^127.
    static constexpr Key never = ~Key{0} >> 1;

    KeyHeap() { reserve(12); }

    void reserve(std::size_t keys) {
        if (const std::size_t needed = root + keys + 4; needed > keys_.size()) {
            keys_.resize(needed, never);
        }
    }

    /// Smallest key; `never` when there is none.
    Key top() {
        close_gap();
        return keys_[root];
    }

    bool empty() const { return size() == 0; }
    std::size_t size() const { return nodes_ - (gap_ ? 1 : 0); }

    [[gnu::always_inline]] void push(Key key) {
        push(key, [](Key) {});
    }

    /// In a large heap, `announce(k)` is called when k moves up to just below the top: for prefetching what it stands
    /// for.
    template <typename Announce>
    [[gnu::always_inline]] void push(Key key, Announce announce) {
        if (gap_) {  // a pop followed by a push, the common pair: the new key takes the place of the old one
            gap_ = false;
            sink_from_root(key, announce);
            return;
        }
        if (root + nodes_ + 4 >= keys_.size()) [[unlikely]] {
            reserve(2 * nodes_ + 12);
        }
        rise(root + nodes_++, key);
    }

    /// Removes the key that top() has just returned.
    void pop() {
        assert(!gap_ && nodes_ > 0);
        gap_ = true;
    }

    /// Removes every key for which `dead(key)` holds.
    template <typename Predicate>
    void remove_if(Predicate dead) {
        close_gap();
        const std::size_t end = root + nodes_;
        nodes_ = 0;
        for (std::size_t position = root; position < end; ++position) {
            const Key key = keys_[position];
            keys_[position] = never;
            if (!dead(key)) {
                rise(root + nodes_++, key);
            }
        }
    }

   private:
    // Node i stands at keys_[i + 3], so the children 4i + 1 ... 4i + 4 of node i fill one cache line. In array
    // positions p = i + 3 the children of p start at 4 (p - 2). Everything beyond the last key is `never`.
    static constexpr std::size_t root = 3;
    static constexpr std::size_t prefetch_above = 4096;  // keys; fewer stay in the cache anyway

    // A popped root leaves a gap until the next operation; if that pushes nothing, the last key fills it.
    void close_gap() {
        if (gap_) {
            gap_ = false;
            const std::size_t last = root + --nodes_;
            const Key key = keys_[last];
            keys_[last] = never;
            if (nodes_ != 0) {
                sink_from_root(key, [](Key) {});
            }
        }
    }

    template <typename Announce>
    [[gnu::always_inline]] void sink_from_root(Key key, Announce announce) {
        rise(nodes_ > prefetch_above ? gap_sunk_from_root<true>(announce) : gap_sunk_from_root<false>(announce), key);
    }

    // Bottom-up: the gap first goes all the way down along the smallest children, then the key rises from there. That
    // spares the comparison with the key on each level, whose outcome no branch predictor can guess. Neither can it
    // guess the smallest child: within the pairs that is chosen by arithmetic which compilers do not turn back into
    // branches, between the pairs by a conditional move, which is faster and which the stated probability asks for.
    // Positions are in bytes: one shift less per level on the chain of dependent instructions that sets the speed.
    template <bool large, typename Announce>
    std::size_t gap_sunk_from_root(Announce announce) {
        constexpr std::size_t size = sizeof(Key);
        std::byte* const base = reinterpret_cast<std::byte*>(keys_.data());
        const auto at = [base](std::size_t position) -> Key& { return *reinterpret_cast<Key*>(base + position); };
        const std::size_t end = (root + nodes_) * size;
        std::size_t gap = root * size;
        for (std::size_t child = 4 * size; child < end; child = 4 * gap - 8 * size) {
            if constexpr (large) {
                // The four lines of grandchildren, among which the next step chooses one.
                for (std::size_t line = 0; line < 4; ++line) {
                    __builtin_prefetch(base + 4 * (child + line * size) - 8 * size);
                }
            }
            const std::size_t left = child + (all_ones_if_less(at(child + size), at(child)) & size);
            const std::size_t right =
                child + 2 * size + (all_ones_if_less(at(child + 3 * size), at(child + 2 * size)) & size);
            const std::size_t smallest = __builtin_expect_with_probability(at(right) < at(left), 1, 0.5) ? right : left;
            if (large && gap / (4 * size) == 1) {
                announce(at(smallest));
            }
            at(gap) = at(smallest);
            gap = smallest;
        }
        return gap / size;
    }

    // The sign of a difference of keys, which are below 2^127.
    static std::size_t all_ones_if_less(Key a, Key b) {
        const auto upper_half = static_cast<std::uint64_t>((a - b) >> 64);
        return static_cast<std::size_t>(static_cast<std::int64_t>(upper_half) >> 63);
    }

    void rise(std::size_t position, Key key) {
        Key* const keys = keys_.data();
        while (position > root) {
            const std::size_t parent = position / 4 + 2;
            if (keys[parent] < key) {
                break;
            }
            keys[position] = keys[parent];
            position = parent;
        }
        keys[position] = key;
    }

    std::vector<Key, CacheLineAllocator<Key>> keys_;
    std::size_t nodes_ = 0;  // including the gap
    bool gap_ = false;       // the root's key was popped
};

}  // namespace millrace
