// A first-in first-out queue that grows when it must and allocates nothing once it is large enough.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace millrace {

template <typename Value>
class GrowingRing {
   public:
    GrowingRing() : values_(16) {}

    std::size_t size() const { return tail_ - head_; }
    bool empty() const { return tail_ == head_; }

    void push_back(Value value) {
        if (size() == values_.size()) {
            grow();
        }
        values_[tail_++ & (values_.size() - 1)] = value;
    }

    Value pop_front() {
        assert(!empty());
        return values_[head_++ & (values_.size() - 1)];
    }

   private:
    void grow() {
        std::vector<Value> larger(2 * values_.size());
        for (std::size_t i = head_; i != tail_; ++i) {
            larger[i & (larger.size() - 1)] = values_[i & (values_.size() - 1)];
        }
        values_ = std::move(larger);
    }

    std::vector<Value> values_;  ///< a power of two of them; positions count up for ever and are taken modulo the size
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
};

}  // namespace millrace
