#include "sim/theory/optimal_design.h"

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "sim/engine/portable_math.h"
#include "sim/theory/arguments.h"

namespace millrace {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void require_mu_and_rho(double mu, double rho) {
    require_positive(mu, "imbalance mu");
    require(rho >= 0.0 && rho <= 1.0, "coupling rho", "between 0 and 1", rho);
}

void require_shape(const BufferShape& shape) {
    require(shape.batch >= 1.0 && std::isfinite(shape.batch), "batch", "finite and at least one rollout", shape.batch);
    require_positive(shape.fresh_per_step, "number of fresh rollouts per step");
    require(shape.buffer >= shape.fresh_per_step && std::isfinite(shape.buffer), "buffer",
            "finite and at least the number of fresh rollouts per step", shape.buffer);
}

/// Number of whole steps that the buffer reaches back. Quotients such as 0.3 / 0.1 are whole up to rounding.
double steps_up(double horizon) {
    const double nearest = std::round(horizon);
    return std::abs(horizon - nearest) <= 1e-9 * nearest ? nearest : std::ceil(horizon);
}

double whole_horizon(const BufferShape& shape) {
    const double horizon = shape.buffer / shape.fresh_per_step;
    const double whole = std::round(horizon);
    require(std::abs(horizon - whole) <= 1e-9 * whole, "horizon N/R", "a whole number of steps", horizon);
    return whole;
}

/// min over y of J: sigmabar^2 (1/sqrt(mu) + sqrt(rho + 1/x))^2.
double cost_at_best_replay_ratio(double mean_noise, double horizon, double mu, double rho) {
    const double root = 1.0 / std::sqrt(mu) + std::sqrt(rho + 1.0 / horizon);
    return mean_noise * root * root;
}

OptimalDesign design_at(double mean_noise, double horizon, double mu, double rho) {
    return {.horizon = horizon,
            .replay_ratio = optimal_replay_ratio(horizon, mu, rho),
            .cost = cost_at_best_replay_ratio(mean_noise, horizon, mu, rho)};
}

}  // namespace

// ---- the theorem --------------------------------------------------------------------------------------------------

double variance_bound(const NoiseConfig& noise, const BufferShape& shape) {
    check(noise);
    require_shape(shape);
    const double steps = steps_up(shape.buffer / shape.fresh_per_step);
    require(steps <= 1e8, "horizon N/R", "at most a hundred million steps", steps);
    return mean_sigma2(noise.sigma2, static_cast<int>(steps)) *
           (1.0 / shape.batch + 1.0 / shape.buffer + noise.rho / shape.fresh_per_step);
}

double on_policy_variance_bound(const NoiseConfig& noise, double batch) {
    check(noise);
    require(batch >= 1.0 && std::isfinite(batch), "batch", "finite and at least one rollout", batch);
    return sigma2_of_sample(noise.sigma2, 0.0) * (1.0 + noise.rho) / batch;
}

double largest_step_size(const Problem& problem, const BufferShape& shape) {
    require_shape(shape);
    require_positive(problem.smoothness, "smoothness");
    require(problem.bias_slope >= 0.0 && std::isfinite(problem.bias_slope), "bias slope", "zero or positive and finite",
            problem.bias_slope);
    const double by_smoothness = 0.5 / problem.smoothness;
    if (problem.bias_slope == 0.0) {
        return by_smoothness;
    }
    return std::min(shape.fresh_per_step / (2.0 * std::sqrt(2.0) * problem.bias_slope * shape.buffer), by_smoothness);
}

double convergence_bound(const Problem& problem, const BufferShape& shape, double variance, double eta,
                         double updates) {
    const double largest = largest_step_size(problem, shape);
    require(problem.initial_loss >= 0.0 && std::isfinite(problem.initial_loss), "initial loss",
            "zero or positive and finite", problem.initial_loss);
    require(variance >= 0.0 && std::isfinite(variance), "variance", "zero or positive and finite", variance);
    require(updates >= 1.0 && std::isfinite(updates), "number of updates", "at least one and finite", updates);
    require_positive(eta, "step size");
    if (eta > largest) {
        std::ostringstream sentence;
        sentence << "The convergence theorem holds for step sizes up to " << largest << ", but the step size is " << eta
                 << ".";
        throw std::domain_error(sentence.str());
    }
    const double drift = problem.bias_slope * shape.buffer / shape.fresh_per_step;
    return 12.0 * problem.initial_loss / (eta * updates) +
           8.0 * eta * (4.0 * drift * drift * eta + problem.smoothness) * variance;
}

// ---- exact second moments -----------------------------------------------------------------------------------------

namespace {

double second_moment_at_distance(const BufferShape& shape, double rho, Draws draws, double distance_over_n) {
    const double pairs = (shape.batch - 1.0) / shape.batch;
    const double repeats = draws == Draws::with_replacement ? pairs / shape.buffer : 0.0;
    return 1.0 / shape.batch + repeats + rho * pairs * distance_over_n;
}

void require_sampling(const BufferShape& shape, double rho, Draws draws) {
    require_shape(shape);
    require(rho >= 0.0 && rho <= 1.0, "coupling rho", "between 0 and 1", rho);
    if (draws == Draws::without_replacement) {
        require(shape.batch <= shape.buffer, "batch", "at most the buffer when drawn without replacement", shape.batch);
    }
}

}  // namespace

double second_moment(const BufferShape& shape, double rho, Draws draws) {
    require_sampling(shape, rho, draws);
    const double horizon = whole_horizon(shape);
    if (shape.batch == 1.0 || horizon == 1.0) {  // no pairs, or none at a distance; also N = 1 without replacement
        return second_moment_at_distance(shape, rho, draws, 0.0);
    }
    const double others = draws == Draws::with_replacement ? shape.buffer : shape.buffer - 1.0;
    return second_moment_at_distance(shape, rho, draws, (horizon * horizon - 1.0) / (3.0 * horizon * others));
}

double second_moment_bound(const BufferShape& shape, double rho, Draws draws) {
    require_sampling(shape, rho, draws);
    return second_moment_at_distance(shape, rho, draws, (whole_horizon(shape) - 1.0) / shape.buffer);
}

// ---- the optimal design -------------------------------------------------------------------------------------------

double design_cost(double mean_noise, double horizon, double replay_ratio, double mu, double rho) {
    require_mu_and_rho(mu, rho);
    require(mean_noise >= 0.0, "mean noise", "zero or positive", mean_noise);
    require(horizon > 0.0, "horizon", "positive", horizon);
    require(replay_ratio > 0.0, "replay ratio", "positive", replay_ratio);
    const double staleness_term = rho + 1.0 / horizon;
    if (std::isinf(replay_ratio) && staleness_term == 0.0) {
        return mean_noise / mu;  // (1 + y/mu) / y as y grows
    }
    return mean_noise * (1.0 + replay_ratio / mu) * (1.0 / replay_ratio + staleness_term);
}

double on_policy_cost(const NoiseLaw& law, double mu, double rho) {
    require_mu_and_rho(mu, rho);
    // V c / mu with R = B = 1, and V proportional to 1/B.
    return on_policy_variance_bound({.sigma2 = law, .rho = rho}, 1.0) * (1.0 + mu) / mu;
}

double optimal_replay_ratio(double horizon, double mu, double rho) {
    require_mu_and_rho(mu, rho);
    require(horizon > 0.0, "horizon", "positive", horizon);
    return std::sqrt(mu / (rho + 1.0 / horizon));
}

OptimalDesign power_law_optimum(const PowerLawNoise& law, double mu, double rho) {
    check(law);
    require_mu_and_rho(mu, rho);
    const double alpha = law.alpha;
    const double rest = 1.0 - 2.0 * alpha;
    const double replay_ratio = mu * rest / (alpha + std::sqrt(alpha * alpha + mu * rho * rest));
    const double horizon = replay_ratio * replay_ratio / (2.0 * alpha * (mu + replay_ratio));
    return {.horizon = horizon,
            .replay_ratio = replay_ratio,
            .cost = design_cost(continuous_mean_sigma2(law, horizon), horizon, replay_ratio, mu, rho)};
}

OptimalDesign whole_step_optimum(const NoiseLaw& law, double mu, double rho) {
    check(law);
    require_mu_and_rho(mu, rho);
    constexpr int million = 1'000'000;
    int last_step = million;
    double noise_at_infinity = infinity;
    if (const auto* floor_growth = std::get_if<FloorGrowthNoise>(&law); floor_growth && floor_growth->growth == 0.0) {
        return design_at(floor_growth->floor, infinity, mu, rho);
    }
    if (const auto* table = std::get_if<TabulatedNoise>(&law)) {
        const auto& [end, last_value] = table->points.back();
        require(end <= 1e7, "last staleness of the noise table", "at most ten million steps", end);
        // Beyond the table sigmabar^2(H) = v - Q/H. In u = 1/H the slope of log J* is -Q/(v - Q u) plus a falling term,
        // so log J* is concave in u there: it is smallest at an end, the table's or infinity.
        last_step = static_cast<int>(std::ceil(end)) + 1;
        noise_at_infinity = last_value;
    }

    OptimalDesign best{.cost = infinity};
    double sum = 0.0;
    for (int steps = 1; steps <= last_step; ++steps) {
        sum += sigma2_of_sample(law, steps - 1);
        const double mean_noise = sum / steps;
        // sigmabar^2 never falls, so no longer horizon can cost less than this one with an infinite buffer's variance.
        if (cost_at_best_replay_ratio(mean_noise, infinity, mu, rho) >= best.cost) {
            return best;
        }
        const OptimalDesign design = design_at(mean_noise, steps, mu, rho);
        if (design.cost < best.cost) {
            best = design;
        }
    }
    if (std::isfinite(noise_at_infinity)) {
        const OptimalDesign unbounded = design_at(noise_at_infinity, infinity, mu, rho);
        return unbounded.cost <= best.cost ? unbounded : best;
    }
    const auto continuous = [&law](double horizon) { return continuous_mean_sigma2(law, horizon); };
    const OptimalDesign beyond = continuous_optimum(continuous, mu, rho, 1.0, 1e15);
    if (!beyond.horizon_is_finite() || beyond.horizon <= million) {
        return beyond.horizon_is_finite() ? best : beyond;
    }
    const double steps = std::round(beyond.horizon);
    return design_at(continuous(steps), steps, mu, rho);
}

namespace {

double integral_mean(const FloorGrowthNoise& law, double horizon) {
    return law.floor + law.growth * portable::pow(horizon, law.exponent) / (1.0 + law.exponent);
}

double integral_mean(const PowerLawNoise& law, double horizon) {
    return portable::pow(horizon / law.tau, 2.0 * law.alpha) / (1.0 + 2.0 * law.alpha);
}

double integral_mean(const TabulatedNoise& law, double horizon) {
    double integral = 0.0;
    double from = 0.0;
    for (const auto& [staleness, value] : law.points) {
        const double to = std::min(staleness, horizon);
        integral += 0.5 * (sigma2(law, from) + sigma2(law, to)) * (to - from);
        from = to;
    }
    return (integral + law.points.back().second * (horizon - from)) / horizon;
}

}  // namespace

double continuous_mean_sigma2(const NoiseLaw& law, double horizon) {
    check(law);
    require_positive(horizon, "horizon");
    return std::visit([horizon](const auto& kind) { return integral_mean(kind, horizon); }, law);
}

OptimalDesign continuous_optimum(const std::function<double(double)>& mean_noise, double mu, double rho, double lowest,
                                 double highest) {
    require_mu_and_rho(mu, rho);
    require_positive(lowest, "lowest horizon");
    require(highest > lowest && std::isfinite(highest), "highest horizon", "finite and above the lowest", highest);
    const auto log_cost = [&](double log_horizon) {
        const double horizon = portable::exp(log_horizon);
        return portable::log(cost_at_best_replay_ratio(mean_noise(horizon), horizon, mu, rho));
    };
    constexpr int intervals = 1000;
    const double start = portable::log(lowest);
    const double width = (portable::log(highest) - start) / intervals;
    int best = 0;
    double best_cost = infinity;
    for (int i = 0; i <= intervals; ++i) {
        const double cost = log_cost(start + i * width);
        require(!std::isnan(cost), "mean noise", "a number at every horizon", cost);
        if (cost < best_cost) {
            best = i;
            best_cost = cost;
        }
    }
    const OptimalDesign unbounded = design_at(mean_noise(highest), infinity, mu, rho);
    if (best == intervals || portable::log(unbounded.cost) <= best_cost + 1e-12) {  // flat up to rounding
        return unbounded;
    }
    const double left = start + std::max(best - 1, 0) * width;
    const double right = start + (best + 1) * width;
    constexpr int bits = std::numeric_limits<double>::digits / 2;  // a minimum is flat: more digits are noise
    const double horizon = portable::exp(boost::math::tools::brent_find_minima(log_cost, left, right, bits).first);
    return design_at(mean_noise(horizon), horizon, mu, rho);
}

}  // namespace millrace
