// A priority queue of keys in numbered places: a tournament, in which each inner node holds the smaller of the two keys
// below it.
//
// For a fixed number of places of which most are taken. A new key takes part in one match per level, always on the same
// path, where a heap of as many keys (key_heap.h) has to find the smallest of several children on each: half the work.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <vector>

#include "sim/engine/key_heap.h"

namespace millrace {

/// Keys are unsigned integers, and carry their place in the lowest bits if one wants to know where the smallest is.
template <typename Key>
class KeyTournament {
   public:
    /// Larger than any key that may be put in.
    static constexpr Key never = ~Key{0};

    explicit KeyTournament(std::size_t places) : leaves_(std::bit_ceil(places)), nodes_(2 * leaves_, never) {}

    /// The smallest key; `never` when there is none.
    Key top() const {
        if (gap_ == none) {
            return nodes_[1];
        }
        const Key* const nodes = nodes_.data();
        Key key = never;
        for (std::size_t node = gap_; node > 1; node /= 2) {
            key = smaller(nodes[node ^ 1], key);
        }
        return key;
    }

    /// Puts a key into a place, instead of the one that was there, if any was.
    void put(std::size_t place, Key key) {
        assert(place < leaves_ && key != never);
        const std::size_t leaf = leaves_ + place;
        if (gap_ != leaf) {
            close_gap();
        }
        gap_ = none;  // the new key takes the place of the one removed before, the common case
        play(leaf, key);
    }

    /// The key in a place; `never` when there is none.
    Key key(std::size_t place) const {
        assert(place < leaves_);
        return gap_ == leaves_ + place ? never : nodes_[leaves_ + place];
    }

    /// Removes the key in a place, if there is one.
    void remove(std::size_t place) {
        assert(place < leaves_);
        close_gap();
        play(leaves_ + place, never);
    }

    /// The same for the smallest key, which is in `place`: cheaper, above all if the next to come is put there.
    void remove_top(std::size_t place) {
        close_gap();
        gap_ = leaves_ + place;
        assert(nodes_[gap_] == nodes_[1]);
    }

    /// Makes every key smaller by `amount`, which none is below.
    void lower_all(Key amount) {
        close_gap();
        for (Key& key : nodes_) {
            key -= key == never ? 0 : amount;
        }
    }

   private:
    static constexpr std::size_t none = 0;

    // By conditional moves, which the stated probability asks for: no branch predictor can guess the outcome.
    static Key smaller(Key a, Key b) { return __builtin_expect_with_probability(a < b, 1, 0.5) ? a : b; }

    // The opponent of node i is node i ^ 1, the next match at i / 2.
    void play(std::size_t node, Key key) {
        Key* const nodes = nodes_.data();
        nodes[node] = key;
        while (node > 1) {
            key = smaller(nodes[node ^ 1], key);
            node /= 2;
            nodes[node] = key;
        }
    }

    void close_gap() {
        if (gap_ != none) {
            play(gap_, never);
            gap_ = none;
        }
    }

    std::size_t leaves_;
    std::vector<Key, CacheLineAllocator<Key>> nodes_;  ///< [1] is the root, [2 i] and [2 i + 1] are below [i]
    std::size_t gap_ = none;  ///< a leaf whose key was removed, though it still stands in all nodes above
};

}  // namespace millrace
