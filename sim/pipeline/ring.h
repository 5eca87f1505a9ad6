// A double-ended queue of fixed capacity: both kinds of store keep their order of arrival in one.
#pragma once

#include <cassert>
#include <cstddef>
#include <vector>

namespace millrace {

template <typename Value>
class Ring {
   public:
    explicit Ring(std::size_t capacity) : values_(capacity) {}

    std::size_t size() const { return size_; }
    std::size_t capacity() const { return values_.size(); }
    bool empty() const { return size_ == 0; }
    bool full() const { return size_ == values_.size(); }

    /// The value that is `offset` places behind the oldest.
    const Value& operator[](std::size_t offset) const {
        assert(offset < size_);
        return values_[at(offset)];
    }

    void push_back(Value value) {
        assert(!full());
        values_[at(size_)] = value;
        ++size_;
    }

    Value pop_front() {
        assert(!empty());
        const Value value = values_[first_];
        first_ = first_ + 1 == values_.size() ? 0 : first_ + 1;
        --size_;
        return value;
    }

    Value pop_back() {
        assert(!empty());
        --size_;
        return values_[at(size_)];
    }

   private:
    std::size_t at(std::size_t offset) const {
        const std::size_t position = first_ + offset;
        return position < values_.size() ? position : position - values_.size();
    }

    std::vector<Value> values_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

}  // namespace millrace
