#include "sim/metrics/batch_noise.h"

#include <algorithm>
#include <cmath>

namespace millrace {

BatchNoise::BatchNoise(const NoiseConfig& config, std::int64_t store_capacity)
    : config_(config), coupling_per_step_(config.rho / static_cast<double>(store_capacity)) {
    level(0);
}

const BatchNoise::Level& BatchNoise::level(std::int64_t staleness) {
    while (static_cast<std::int64_t>(levels_.size()) <= staleness) {
        const double variance = sigma2_of_sample(config_.sigma2, static_cast<double>(levels_.size()));
        levels_.push_back({variance, std::sqrt(variance)});
        sigma_sum_.push_back(0.0);
    }
    return levels_[static_cast<std::size_t>(staleness)];
}

void BatchNoise::begin_batch() {
    samples_ = 0;
    own_sum_ = 0.0;
    std::fill_n(sigma_sum_.begin(), oldest_ + 1, 0.0);
    oldest_ = -1;
}

void BatchNoise::add(std::int64_t staleness, std::int32_t earlier_uses) {
    const Level& noise = level(staleness);
    ++samples_;
    // k uses of one rollout contribute k^2 sigma^2: the k-th adds 2 k - 1 of them.
    own_sum_ += noise.sigma2 * static_cast<double>(2 * earlier_uses + 1);
    sigma_sum_[static_cast<std::size_t>(staleness)] += noise.sigma;
    oldest_ = std::max(oldest_, staleness);
}

double BatchNoise::relative_variance() const {
    const double second_moment = own_sum_ + coupling_sum();
    return second_moment / (static_cast<double>(samples_) * levels_.front().sigma2);
}

double BatchNoise::coupling_sum() const {
    if (coupling_per_step_ == 0.0) {
        return 0.0;
    }
    const auto levels = static_cast<std::size_t>(oldest_ + 1);
    double sum = 0.0;
    if (coupling_per_step_ * static_cast<double>(oldest_) <= 1.0) {
        // sum over pairs of (t - s) w_s w_t, with the younger ones' sums carried along.
        double younger = 0.0;
        double younger_distance = 0.0;  // sum over younger samples of sigma x steps between them and this level
        for (std::size_t s = 0; s < levels; ++s) {
            younger_distance += younger;
            sum += sigma_sum_[s] * younger_distance;
            younger += sigma_sum_[s];
        }
        return 2.0 * coupling_per_step_ * sum;
    }
    for (std::size_t s = 0; s < levels; ++s) {
        for (std::size_t t = s + 1; t < levels; ++t) {
            const double correlation = std::min(1.0, coupling_per_step_ * static_cast<double>(t - s));
            sum += correlation * sigma_sum_[s] * sigma_sum_[t];
        }
    }
    return 2.0 * sum;
}

}  // namespace millrace
