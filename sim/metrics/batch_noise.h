// The variance of a batch's gradient under the noise model, for the batch that was really drawn.
//
// Samples i and j of a batch have covariance sigma^2(s) if they are the same rollout, else
// sigma(s_i) sigma(s_j) min(1, rho |t_i - t_j| / N), t being the version that began the rollout and s its staleness:
// the assumptions of the paper's section 4 taken as equalities. The result is the second moment
// (1/B^2) sum_ij cov_ij relative to sigma^2(0) / B, that of an on-policy batch of distinct rollouts.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/theory/noise_law.h"

namespace millrace {

class BatchNoise {
   public:
    /// store_capacity is the N of the coupling.
    BatchNoise(const NoiseConfig& config, std::int64_t store_capacity);

    void begin_batch();
    /// One sample; `earlier_uses` counts how often the same rollout is already in this batch.
    void add(std::int64_t staleness, std::int32_t earlier_uses);
    /// Of the samples added since begin_batch(); at least one.
    double relative_variance() const;

   private:
    struct Level {
        double sigma2 = 0.0;
        double sigma = 0.0;
    };
    const Level& level(std::int64_t staleness);
    double coupling_sum() const;

    NoiseConfig config_;
    double coupling_per_step_;   ///< rho / N
    std::vector<Level> levels_;  ///< by staleness, filled as needed

    std::int64_t samples_ = 0;
    double own_sum_ = 0.0;           ///< covariances of samples with themselves and their repeats
    std::vector<double> sigma_sum_;  ///< by staleness: sum of sigma over the batch
    std::int64_t oldest_ = -1;       ///< largest staleness in the batch
};

}  // namespace millrace
