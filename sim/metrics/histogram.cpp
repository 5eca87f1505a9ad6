#include "sim/metrics/histogram.h"

#include <cmath>

namespace millrace {

std::int64_t Histogram::quantile(double share) const {
    const double needed = share * static_cast<double>(total_);
    std::uint64_t seen = 0;
    for (std::size_t value = 0; value < counts_.size(); ++value) {
        seen += counts_[value];
        if (counts_[value] != 0 && static_cast<double>(seen) >= needed) {
            return static_cast<std::int64_t>(value);
        }
    }
    return 0;
}

double Histogram::mean() const {
    double sum = 0.0;
    for (std::size_t value = 0; value < counts_.size(); ++value) {
        sum += static_cast<double>(value) * static_cast<double>(counts_[value]);
    }
    return total_ == 0 ? 0.0 : sum / static_cast<double>(total_);
}

}  // namespace millrace
