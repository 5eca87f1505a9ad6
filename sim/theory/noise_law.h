// How the gradient noise of a sample grows with its staleness: the sigma^2 and rho of the convergence theorem
// (paper section 4, assumptions on variance and coupling).
#pragma once

#include <utility>
#include <variant>
#include <vector>

namespace millrace {

/// sigma^2(s) = floor + growth s^exponent. Dimensionless: only ratios matter. The shape seen in measurements, where
/// engine mismatch sets a floor (flat noise: growth = 0).
struct FloorGrowthNoise {
    double floor = 1.0;
    double growth = 0.0;
    double exponent = 1.0;
};

/// sigma(s) = (s / tau)^alpha, the law of the paper's closed forms, with 0 < alpha < 1/2. It vanishes at s = 0, so a
/// simulation, which needs a finite on-policy baseline, evaluates it at s + 1: a sample is one step old when the update
/// that uses it is done.
struct PowerLawNoise {
    double alpha = 0.2;
    double tau = 1.0;
};

/// sigma^2 at tabulated staleness, linear in between, constant beyond the last point. Staleness strictly increasing
/// from 0; values non-decreasing and positive.
struct TabulatedNoise {
    std::vector<std::pair<double, double>> points;  ///< (staleness, sigma^2)
};

using NoiseLaw = std::variant<FloorGrowthNoise, PowerLawNoise, TabulatedNoise>;

struct NoiseConfig {
    NoiseLaw sigma2 = FloorGrowthNoise{};
    double rho = 0.0;  ///< coupling, in [0, 1]
};

// Parameters of a noise law lie within these, so that the noise stays finite, also relative to that of a fresh sample,
// for any staleness that a run can reach. Whatever lies beyond is a mistake.
inline constexpr double smallest_noise_number = 1e-12;
inline constexpr double largest_noise_number = 1e12;
inline constexpr double largest_noise_exponent = 4.0;

/// Throws std::invalid_argument with a full sentence when a parameter is out of range.
void check(const NoiseLaw& law);
void check(const NoiseConfig& config);

/// sigma^2(staleness) for staleness >= 0, as the law is written (the power law is 0 at 0).
double sigma2(const NoiseLaw& law, double staleness);

/// sigma^2 as the simulation uses it for a sample of integer staleness: the power law is shifted by one step.
double sigma2_of_sample(const NoiseLaw& law, double staleness);

/// sigmabar^2(H) = (1/H) sum_{s=0}^{H-1} sigma^2_of_sample(s), the mean over a horizon of H >= 1 steps.
double mean_sigma2(const NoiseLaw& law, int horizon);

}  // namespace millrace
