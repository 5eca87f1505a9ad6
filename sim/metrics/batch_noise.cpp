#include "sim/metrics/batch_noise.h"

#include <algorithm>
#include <cmath>

namespace millrace {

BatchNoise::BatchNoise(const NoiseConfig& config, std::int64_t store_capacity)
    : config_(config), coupling_per_step_(config.rho / static_cast<double>(store_capacity)) {}

double BatchNoise::relative_variance(std::span<const std::int64_t> samples, std::span<const std::int64_t> repeats) {
    while (sigma2_.size() < samples.size()) {
        sigma2_.push_back(sigma2_of_sample(config_.sigma2, static_cast<double>(sigma2_.size())));
        sigma_.push_back(std::sqrt(sigma2_.back()));
    }
    double batch = 0.0;
    double second_moment = 0.0;
    for (std::size_t s = 0; s < samples.size(); ++s) {
        batch += static_cast<double>(samples[s]);
        second_moment += sigma2_[s] * static_cast<double>(samples[s] + repeats[s]);
    }
    if (coupling_per_step_ > 0.0) {
        second_moment += coupling_sum(samples);
    }
    return second_moment / (batch * sigma2_.front());
}

double BatchNoise::coupling_sum(std::span<const std::int64_t> samples) const {
    const auto weight = [&](std::size_t s) { return sigma_[s] * static_cast<double>(samples[s]); };
    double sum = 0.0;
    if (coupling_per_step_ * static_cast<double>(samples.size() - 1) <= 1.0) {
        // sum over pairs of levels s < t of (t - s) w_s w_t, with the younger ones' sums carried along.
        double younger = 0.0;
        double younger_distance = 0.0;  // sum over younger samples of sigma x steps between them and this level
        for (std::size_t t = 0; t < samples.size(); ++t) {
            younger_distance += younger;
            sum += weight(t) * younger_distance;
            younger += weight(t);
        }
        return 2.0 * coupling_per_step_ * sum;
    }
    for (std::size_t s = 0; s < samples.size(); ++s) {
        for (std::size_t t = s + 1; t < samples.size(); ++t) {
            sum += std::min(1.0, coupling_per_step_ * static_cast<double>(t - s)) * weight(s) * weight(t);
        }
    }
    return 2.0 * sum;
}

}  // namespace millrace
