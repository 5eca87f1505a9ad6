// The variance of a batch's gradient under the noise model, for the batch that was really drawn.
//
// Samples i and j of a batch have covariance sigma^2(s) if they are the same rollout, else
// sigma(s_i) sigma(s_j) min(1, rho |t_i - t_j| / N), t being the version that began the rollout and s its staleness:
// the assumptions of the paper's section 4 taken as equalities. The result is the second moment
// (1/B^2) sum_ij cov_ij relative to sigma^2(0) / B, that of an on-policy batch of distinct rollouts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/theory/noise_law.h"

namespace millrace {

class BatchNoise {
   public:
    /// store_capacity is the N of the coupling.
    BatchNoise(const NoiseConfig& config, std::int64_t store_capacity);

    /// samples[s] is how many samples of the batch have staleness s; repeats[s] how many ordered pairs of two samples
    /// among them are the same rollout.
    double relative_variance(std::span<const std::int64_t> samples, std::span<const std::int64_t> repeats);

   private:
    double coupling_sum(std::span<const std::int64_t> samples) const;

    NoiseConfig config_;
    double coupling_per_step_;    ///< rho / N
    std::vector<double> sigma2_;  ///< by staleness, filled as needed
    std::vector<double> sigma_;
};

}  // namespace millrace
