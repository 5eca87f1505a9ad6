#include "model/evaluation/first_passage.h"

#include <algorithm>
#include <cstddef>

namespace millrace {

std::vector<double> smoothed(std::span<const double> values) {
    std::vector<double> means;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t first = i == 0 ? 0 : i - 1;
        const std::size_t last = std::min(i + 1, values.size() - 1);
        double sum = 0.0;
        for (std::size_t j = first; j <= last; ++j) {
            sum += values[j];
        }
        means.push_back(sum / static_cast<double>(last - first + 1));
    }
    return means;
}

std::optional<double> first_passage(std::span<const double> at, std::span<const double> values, double target) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] < target) {
            continue;
        }
        if (i == 0) {
            return at[0];
        }
        const double share = (target - values[i - 1]) / (values[i] - values[i - 1]);
        return at[i - 1] + share * (at[i] - at[i - 1]);
    }
    return std::nullopt;
}

double value_at(std::span<const double> at, std::span<const double> values, double where) {
    const auto after = std::ranges::lower_bound(at, where);
    if (after == at.begin()) {
        return values.front();
    }
    if (after == at.end()) {
        return values.back();
    }
    const auto i = static_cast<std::size_t>(after - at.begin());
    const double share = (where - at[i - 1]) / (at[i] - at[i - 1]);
    return values[i - 1] + share * (values[i] - values[i - 1]);
}

double largest_drop(std::span<const double> values) {
    double highest = values.front();
    double drop = 0.0;
    for (const double value : values) {
        highest = std::max(highest, value);
        drop = std::max(drop, highest - value);
    }
    return drop;
}

}  // namespace millrace
