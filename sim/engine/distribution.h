// Probability laws of service times, latencies and lengths.
//
// Every law draws from keyed uniforms with this project's own elementary functions (portable_math.h), so a sample has
// the same bits on every x86-64 machine and with every standard library. A Distribution is an immutable value, cheap
// to copy (the payload is shared).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/random.h"

namespace millrace {

/// What a truncated law does with a value above its cap.
enum class TruncateMode {
    clip,     ///< the cap is returned: an atom at the cap, as a response-length limit makes
    resample  ///< drawn again: the law conditioned on lying at or below the cap
};

/// A law on [0, infinity). The factories throw std::invalid_argument with a full sentence when a parameter is out of
/// range (a negative value, a mean that is not finite, weights that sum to nothing).
class Distribution {
   public:
    /// Always `value`.
    static Distribution constant(double value);
    /// Uniform on [low, high].
    static Distribution uniform(double low, double high);
    static Distribution exponential(double mean);
    /// Lognormal by mean and coefficient of variation (standard deviation / mean).
    static Distribution lognormal(double mean, double cv);
    /// Lognormal by its median and 99th percentile.
    static Distribution lognormal_from_quantiles(double p50, double p99);
    /// Gamma by mean and coefficient of variation: shape = 1 / cv^2, scale = mean cv^2.
    static Distribution gamma(double mean, double cv);
    /// Weibull by scale and shape: P(X > x) = exp(-(x / scale)^shape).
    static Distribution weibull(double scale, double shape);
    /// Pareto tail: P(X > x) = (minimum / x)^shape for x >= minimum. The mean is infinite for shape <= 1, the second
    /// moment for shape <= 2; use it truncated or as a component of a mixture.
    static Distribution pareto(double minimum, double shape);
    /// `of` limited to at most `cap`.
    static Distribution truncated(Distribution of, double cap, TruncateMode mode);
    /// Picks component i with probability weight_i / sum of weights.
    static Distribution mixture(std::vector<std::pair<double, Distribution>> components);
    /// Each of the values with equal probability.
    static Distribution empirical(std::vector<double> values);
    /// Quantile table: pairs (probability, value), both non-decreasing, from probability 0 to 1; linear in between.
    static Distribution quantile_table(std::vector<std::pair<double, double>> table);

    double sample(Draw& draw) const;
    /// The samples that `first`, `first` + 1, ... of `stream` address. Several at once take about half the time of
    /// one by one: a processor computes them side by side, while one alone is a long chain of dependent instructions.
    void sample(const RandomStream& stream, std::uint64_t first, std::span<double> samples) const;
    /// P(X <= x).
    double cdf(double x) const;
    /// Exact where a closed form exists, else by quadrature to 1e-9 relative; infinite where the moment is.
    double mean() const;
    double second_moment() const;
    /// Largest value that can occur; infinite when there is none.
    double maximum() const;
    bool is_constant() const;
    /// One line for people, e.g. "lognormal(mean 5.28, cv 0.5)".
    std::string describe() const;

    struct Law;  // one per kind, in distribution.cpp

   private:
    explicit Distribution(std::shared_ptr<const Law> law) : law_(std::move(law)) {}
    std::shared_ptr<const Law> law_;
};

}  // namespace millrace
