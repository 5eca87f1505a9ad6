#include "model/advantage.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace millrace {

namespace {

constexpr double least_deviation = 1e-4;

double mean_of(std::span<const double> numbers) {
    double sum = 0.0;
    for (const double number : numbers) {
        sum += number;
    }
    return sum / static_cast<double>(numbers.size());
}

double deviation_of(std::span<const double> numbers, double mean) {
    double sum = 0.0;
    for (const double number : numbers) {
        sum += (number - mean) * (number - mean);
    }
    return std::sqrt(sum / static_cast<double>(numbers.size()));
}

}  // namespace

void write_advantages(const ObjectiveSettings& objective, std::span<const double> rewards,
                      std::span<double> advantages) {
    assert(rewards.size() == advantages.size());
    if (rewards.empty()) {
        return;
    }
    // Exact equality, not a deviation of 0: the mean of equal numbers may differ from them in the last bit.
    const bool all_equal = std::ranges::all_of(rewards, [&](double reward) { return reward == rewards.front(); });
    const double mean = all_equal ? rewards.front() : mean_of(rewards);
    double shift = 0.0;
    double scale = 1.0;
    if (objective.algorithm == Algorithm::grpo && !all_equal) {
        scale = 1.0 / (deviation_of(rewards, mean) + least_deviation);
    } else if (objective.algorithm == Algorithm::asymre) {
        shift = objective.shift;
    }
    for (std::size_t i = 0; i < rewards.size(); ++i) {
        advantages[i] = (rewards[i] - (mean + shift)) * scale;
    }
}

}  // namespace millrace
