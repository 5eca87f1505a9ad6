// The convergence theorem with experience replay and what it says about the best buffer and batch (Arnal et al. 2026,
// theory).
//
// Synchronous model: each step inserts R fresh rollouts in a first-in-first-out buffer of N and samples B of it
// uniformly. x = N/R is the staleness horizon in steps, y = B/R the replay ratio, c = B + mu R the compute of a step
// (in units of the training of one rollout). Noise is dimensionless: only ratios matter.
//
// Every function throws std::domain_error with a sentence when an argument has no meaning (mu <= 0, rho outside [0, 1],
// a size below 1, NaN), and std::invalid_argument when the noise law itself is not one (noise_law.h).
#pragma once

#include <functional>
#include <limits>

#include "sim/theory/noise_law.h"

namespace millrace {

// ---- the theorem --------------------------------------------------------------------------------------------------

/// Sizes of the synchronous model, in rollouts. R may be fractional.
struct BufferShape {
    double batch = 1.0;           ///< B
    double buffer = 1.0;          ///< N >= R
    double fresh_per_step = 1.0;  ///< R
};

/// V = sigmabar^2(N/R) (1/B + 1/N + rho/R), the theorem's bound on the variance of a batch gradient. A horizon that is
/// not whole is rounded up, which keeps the bound since sigma does not decrease.
double variance_bound(const NoiseConfig& noise, const BufferShape& shape);

/// V = sigma^2(0) (1/B + rho/R) with R = B: the on-policy baseline, where nothing is drawn twice and the 1/N term is
/// gone. sigma^2(0) is that of a fresh sample, sigma2_of_sample(0), since a pure power law vanishes at 0.
double on_policy_variance_bound(const NoiseConfig& noise, double batch);

/// The constants of the optimisation problem.
struct Problem {
    double initial_loss = 1.0;  ///< F(theta_0), above the infimum
    double smoothness = 1.0;    ///< L
    double bias_slope = 0.0;    ///< kappa: |E[eps]| <= kappa |theta_t - theta_{t_i}|
};

/// Largest step size of the theorem: min(R / (2 sqrt2 kappa N), 1 / (2 L)). The paper prints L/2 for the second, a
/// misprint: its proof uses L eta < 1/2.
double largest_step_size(const Problem& problem, const BufferShape& shape);

/// Bound on the mean of |grad F|^2 over `updates` steps of size eta:
///     12 F(theta_0) / (eta updates) + 8 eta (4 N^2 kappa^2 eta / R^2 + L) V,
/// with V = `variance`. A step size above largest_step_size is a std::domain_error: the theorem says nothing there.
double convergence_bound(const Problem& problem, const BufferShape& shape, double variance, double eta, double updates);

// ---- exact second moments, to see how loose V is ------------------------------------------------------------------

enum class Draws { with_replacement, without_replacement };

/// Second moment of a batch gradient's noise over sigma^2, for flat sigma and corr(eps_i, eps_j) exactly
/// rho |t_i - t_j| / N between distinct samples (own derivation). A batch has B (B-1) ordered pairs; with replacement a
/// pair is twice the same sample with probability 1/N, and |t_i - t_j| of two independent draws over H = N/R steps has
/// mean (H^2 - 1)/(3 H):
///     1/B + (B-1)/(B N) + rho (B-1)/B (H^2 - 1)/(3 H N).
/// Without replacement the pairs are distinct. Identical pairs have distance 0, so the mean distance given distinct
/// ones is larger by N/(N-1):
///     1/B + rho (B-1)/B (H^2 - 1)/(3 H (N-1)).
/// H must be whole; without replacement B <= N.
double second_moment(const BufferShape& shape, double rho, Draws draws);

/// The same with every pair at the largest distance, H - 1, as a bound may take it:
///     1/B + (B-1)/(B N) [with replacement] + rho (B-1)/B (H-1)/N.
/// It lies between second_moment and V.
double second_moment_bound(const BufferShape& shape, double rho, Draws draws);

// ---- the optimal design -------------------------------------------------------------------------------------------

/// J(x, y) = sigmabar^2 (1 + y/mu) (1/y + 1/x + rho), with `mean_noise` = sigmabar^2(x): proportional to the compute
/// that reaches a given gradient norm (V c / mu). x and y may be infinite where the limit is.
double design_cost(double mean_noise, double horizon, double replay_ratio, double mu, double rho);

/// J of the on-policy pipeline in the same unit: sigma^2(fresh) (1 + 1/mu) (1 + rho), from on_policy_variance_bound.
double on_policy_cost(const NoiseLaw& law, double mu, double rho);

/// y*(x) = sqrt(mu / (rho + 1/x)).
double optimal_replay_ratio(double horizon, double mu, double rho);

struct OptimalDesign {
    /// x* = N/R in steps; infinite when noise grows too little for staleness to ever cost more than a larger buffer
    /// saves (always so for flat sigma).
    double horizon = std::numeric_limits<double>::infinity();
    double replay_ratio = 1.0;  ///< y* = B/R; infinite when the horizon is and rho is 0
    double cost = 0.0;          ///< J(x*, y*)

    bool horizon_is_finite() const { return horizon < std::numeric_limits<double>::infinity(); }
};

/// Optimum for sigma(x) = (x/tau)^alpha averaged over a continuous horizon, sigmabar^2 = (x/tau)^(2 alpha) /
/// (1 + 2 alpha):
///     y* = mu (1 - 2 alpha) / (alpha + sqrt(alpha^2 + mu rho (1 - 2 alpha))),   x* = y*^2 / (2 alpha (mu + y*)).
/// The paper's y* = (-alpha + sqrt(...))/rho multiplied through by its conjugate, so that rho -> 0 loses no digits and
/// rho = 0 is mu (1 - 2 alpha)/(2 alpha); the paper's x* is 0/0 at rho = 1/mu, this one is not. x* may be below 1, a
/// buffer smaller than one step's rollouts: read it as "keep the fresh ones only".
OptimalDesign power_law_optimum(const PowerLawNoise& law, double mu, double rho);

/// Optimum over whole horizons H = 1, 2, ... with mean_sigma2(law, H), the noise as a simulation has it. Exact up to a
/// million steps; beyond, the continuous optimum rounded. A table must end within ten million steps.
OptimalDesign whole_step_optimum(const NoiseLaw& law, double mu, double rho);

/// (1/x) integral of sigma^2 from 0 to x > 0, with the law as it is written; its value at 0 as x -> 0.
double continuous_mean_sigma2(const NoiseLaw& law, double horizon);

/// Optimum over real horizons in [lowest, highest] for any sigmabar^2(x): a scan on a logarithmic grid, then Brent's
/// method, so it does not rely on a single minimum. x* is good to about 1e-7 relative, J to rounding. If J is smallest
/// at `highest` the horizon is reported infinite, with the cost of an infinite buffer at the noise found there.
OptimalDesign continuous_optimum(const std::function<double(double)>& mean_noise, double mu, double rho,
                                 double lowest = 1e-6, double highest = 1e12);

}  // namespace millrace
