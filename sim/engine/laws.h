// The laws behind distribution.h. Internal: only distribution.cpp includes this.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sim/engine/distribution.h"
#include "sim/engine/portable_math.h"
#include "sim/engine/random.h"

namespace millrace {

namespace laws {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// Each law below knows its cdf, the moments of the part at or below a bound,
//     moment_below(k, c) = E[X^k 1{X <= c}],  k = 1 or 2,
// which gives the moments of every truncated law in closed form (c = infinity gives the plain moments), and how to
// sample: by `of_uniform` where one uniform is all that it takes, else by `sample` from a draw. A law that is faster
// for many samples has `of_uniforms`, in place, or a `sample` for a block, too.

inline double power(double x, int k) {
    return k == 1 ? x : x * x;
}

/// Uniform on [low, high], and the constant when the two agree.
struct Uniform {
    double low, high;

    double of_uniform(double u) const { return low + (high - low) * u; }
    double cdf(double x) const { return x >= high ? 1.0 : x < low ? 0.0 : (x - low) / (high - low); }
    double moment_below(int k, double c) const {
        const double top = std::min(c, high);
        const double mean_power = k == 1 ? (low + top) / 2 : (low * low + low * top + top * top) / 3;
        return cdf(c) * mean_power;
    }
};

struct Exponential {
    double mean;

    double of_uniform(double u) const { return -mean * portable::log(u); }
    double quantile(double p) const { return -mean * portable::log1p(-p); }
    double cdf(double x) const { return x > 0 ? -portable::expm1(-x / mean) : 0.0; }
    double moment_below(int k, double c) const {
        return (k == 1 ? mean : 2 * mean * mean) * portable::gamma_p(k + 1.0, c / mean);
    }
};

/// exp(mu + sigma Z).
struct Lognormal {
    double mu, sigma;

    double of_uniform(double u) const { return quantile(u); }
    void of_uniforms(std::span<double> u) const {
        portable::normal_quantiles(u);
        for (double& z : u) {
            z = portable::exp(mu + sigma * z);
        }
    }
    double quantile(double p) const { return portable::exp(mu + sigma * portable::normal_quantile(p)); }
    double cdf(double x) const { return x > 0 ? portable::normal_cdf((portable::log(x) - mu) / sigma) : 0.0; }
    double moment_below(int k, double c) const {
        // Weighting a lognormal law by x^k shifts its mu by k sigma^2.
        const double below = c > 0 ? portable::normal_cdf((portable::log(c) - mu) / sigma - k * sigma) : 0.0;
        return portable::exp(k * (mu + 0.5 * k * sigma * sigma)) * below;
    }
};

struct Gamma {
    double shape, scale;

    // Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000). Each try takes one
    // Philox block; 95 % of the first tries succeed.
    double sample(Draw& draw) const {
        const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
        const double slope = 1 / std::sqrt(9 * d);
        for (;;) {
            const double z = portable::normal_quantile(draw.uniform());
            const double u = draw.uniform();
            const double root = 1 + slope * z;
            if (root <= 0) {
                continue;
            }
            const double v = root * root * root;
            if (portable::log(u) < 0.5 * z * z + d - d * v + d * portable::log(v)) {
                // For shape < 1: a gamma of shape + 1 times U^(1/shape).
                return scale * d * v * (shape < 1 ? portable::pow(draw.uniform(), 1 / shape) : 1.0);
            }
        }
    }
    double cdf(double x) const { return portable::gamma_p(shape, x / scale); }
    double moment_below(int k, double c) const {
        const double whole = k == 1 ? shape * scale : shape * (shape + 1) * scale * scale;
        return whole * portable::gamma_p(shape + k, c / scale);
    }
    // By bisection in the bit pattern, which orders positive numbers: 64 steps at most whatever the parameters. Slow,
    // and only used when rejection has failed several times.
    double quantile(double p) const {
        std::uint64_t below = 0;
        auto above = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::max());
        while (above - below > 1) {
            const std::uint64_t middle = below + (above - below) / 2;
            (cdf(std::bit_cast<double>(middle)) < p ? below : above) = middle;
        }
        return std::bit_cast<double>(above);
    }
};

/// P(X > x) = exp(-(x / scale)^shape).
struct Weibull {
    double scale, shape;

    double of_uniform(double u) const { return scale * portable::pow(-portable::log(u), 1 / shape); }
    double quantile(double p) const { return scale * portable::pow(-portable::log1p(-p), 1 / shape); }
    double cdf(double x) const { return x > 0 ? -portable::expm1(-portable::pow(x / scale, shape)) : 0.0; }
    double moment_below(int k, double c) const {
        const double order = 1 + k / shape;
        return power(scale, k) * portable::gamma(order) * portable::gamma_p(order, portable::pow(c / scale, shape));
    }
};

/// P(X > x) = (minimum / x)^shape.
struct Pareto {
    double minimum, shape;

    double of_uniform(double u) const { return minimum * portable::pow(u, -1 / shape); }
    double quantile(double p) const { return minimum * portable::exp(-portable::log1p(-p) / shape); }
    double cdf(double x) const { return x > minimum ? -portable::expm1(-shape * portable::log(x / minimum)) : 0.0; }
    // Integral of shape minimum^shape x^(k - shape - 1) from the minimum to c.
    double moment_below(int k, double c) const {
        const double excess = shape - k;
        if (c == infinity) {
            return excess > 0 ? power(minimum, k) * shape / excess : infinity;
        }
        if (c <= minimum) {
            return 0.0;
        }
        const double logs = portable::log(c / minimum);
        const double integral = excess == 0 ? logs : -portable::expm1(-excess * logs) / excess;
        return power(minimum, k) * shape * integral;
    }
};

/// min(X, cap).
struct Clipped {
    Distribution of;
    double cap;

    double sample(Draw& draw) const { return std::min(of.sample(draw), cap); }
    void sample(const RandomStream& stream, std::uint64_t first, std::span<double> samples) const {
        of.sample(stream, first, samples);
        for (double& sample : samples) {
            sample = std::min(sample, cap);
        }
    }
    double cdf(double x) const { return x >= cap ? 1.0 : of.cdf(x); }
    double moment_below(int k, double c) const;  // in distribution.cpp, as is Mixture's
};

/// X given X <= cap, for one of the continuous laws above.
template <class Base>
struct Resampled {
    Base of;
    double cap;
    double mass;  // P(X <= cap)

    double of_uniform(double u) const requires(!std::is_same_v<Base, Gamma>) {
        return std::min(of.quantile(mass * u), cap);
    }
    double sample(Draw& draw) const requires(std::is_same_v<Base, Gamma>) {
        for (int attempt = 0; attempt < 8; ++attempt) {
            if (const double x = of.sample(draw); x <= cap) {
                return x;
            }
        }
        return std::min(of.quantile(mass * draw.uniform()), cap);
    }
    double cdf(double x) const { return x >= cap ? 1.0 : of.cdf(x) / mass; }
    double moment_below(int k, double c) const { return of.moment_below(k, std::min(c, cap)) / mass; }
};

using AnyResampled =
    std::variant<Resampled<Exponential>, Resampled<Lognormal>, Resampled<Gamma>, Resampled<Weibull>, Resampled<Pareto>>;

struct Mixture {
    struct Component {
        double weight;  // sums to 1
        Distribution law;
    };
    std::vector<Component> components;

    double sample(Draw& draw) const {
        double u = draw.uniform();
        std::size_t i = 0;
        for (; i + 1 < components.size() && u >= components[i].weight; ++i) {
            u -= components[i].weight;
        }
        return components[i].law.sample(draw);
    }
    double cdf(double x) const {
        double sum = 0;
        for (const Component& component : components) {
            sum += component.weight * component.law.cdf(x);
        }
        return std::min(sum, 1.0);
    }
    double moment_below(int k, double c) const;
};

/// Ascending values, equally likely.
struct Empirical {
    std::vector<double> values;

    double sample(Draw& draw) const { return values[draw.below(values.size())]; }
    std::size_t count_below(double x) const {
        return static_cast<std::size_t>(std::upper_bound(values.begin(), values.end(), x) - values.begin());
    }
    double cdf(double x) const { return static_cast<double>(count_below(x)) / static_cast<double>(values.size()); }
    double moment_below(int k, double c) const {
        double sum = 0;
        for (std::size_t i = 0, n = count_below(c); i < n; ++i) {
            sum += power(values[i], k);
        }
        return sum / static_cast<double>(values.size());
    }
};

/// Piecewise linear quantile function through (probability, value).
struct QuantileTable {
    std::vector<std::pair<double, double>> points;

    double of_uniform(double u) const {
        const auto after = std::upper_bound(points.begin() + 1, points.end() - 1, u,
                                            [](double p, const auto& point) { return p < point.first; });
        const auto [p0, x0] = *(after - 1);
        const auto [p1, x1] = *after;
        return x0 + (x1 - x0) * ((u - p0) / (p1 - p0));
    }
    double cdf(double x) const {
        const auto above = std::upper_bound(points.begin(), points.end(), x,
                                            [](double value, const auto& point) { return value < point.second; });
        if (above == points.begin() || above == points.end()) {
            return above == points.end() ? 1.0 : 0.0;
        }
        const auto [p0, x0] = *(above - 1);
        const auto [p1, x1] = *above;
        return p0 + (p1 - p0) * ((x - x0) / (x1 - x0));
    }
    // The table of the law conditioned on lying at or below c, not yet normalised: its last probability is cdf(c).
    std::vector<std::pair<double, double>> points_below(double c) const {
        std::vector<std::pair<double, double>> below;
        std::copy_if(points.begin(), points.end(), std::back_inserter(below),
                     [c](const auto& point) { return point.second <= c; });
        if (!below.empty() && below.size() < points.size()) {
            below.emplace_back(cdf(c), below.back().first < cdf(c) ? c : below.back().second);
        }
        return below;
    }
    double moment_below(int k, double c) const {
        const auto below = points_below(c);
        double sum = 0;
        for (std::size_t i = 1; i < below.size(); ++i) {
            sum += Uniform{below[i - 1].second, below[i].second}.moment_below(k, infinity) *
                   (below[i].first - below[i - 1].first);
        }
        return sum;
    }
};

using Payload = std::variant<Uniform, Exponential, Lognormal, Gamma, Weibull, Pareto, Clipped, AnyResampled, Mixture,
                             Empirical, QuantileTable>;

// Calls `action` on the law itself; up to eleven alternatives compile to a switch.
template <class Action>
decltype(auto) on_law(const Payload& payload, Action action) {
    return std::visit(
        [&](const auto& law) -> decltype(auto) {
            if constexpr (std::is_same_v<std::decay_t<decltype(law)>, AnyResampled>) {
                return std::visit(action, law);
            } else {
                return action(law);
            }
        },
        payload);
}

}  // namespace laws

}  // namespace millrace
