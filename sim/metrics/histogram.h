// Counts of small non-negative integers: staleness, replay counts, steps since last use.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace {

class Histogram {
   public:
    void add(std::int64_t value, std::uint64_t count = 1) {
        if (value >= static_cast<std::int64_t>(counts_.size())) {
            counts_.resize(static_cast<std::size_t>(value) + 1);
        }
        counts_[static_cast<std::size_t>(value)] += count;
        total_ += count;
    }

    void merge(const Histogram& other) {
        for (std::size_t value = 0; value < other.counts_.size(); ++value) {
            if (other.counts_[value] != 0) {
                add(static_cast<std::int64_t>(value), other.counts_[value]);
            }
        }
    }

    std::uint64_t total() const { return total_; }
    /// counts()[v] is how often the value v was added; the last entry is not zero.
    const std::vector<std::uint64_t>& counts() const { return counts_; }

    /// Smallest value v such that at least `share` of the counts lie at or below v; 0 when empty.
    std::int64_t quantile(double share) const;
    double mean() const;

   private:
    std::vector<std::uint64_t> counts_;
    std::uint64_t total_ = 0;
};

}  // namespace millrace
