#include "sim/engine/distribution.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "sim/engine/laws.h"
#include "sim/engine/portable_math.h"

namespace millrace {

namespace {

using laws::infinity;

// ---- messages ----

std::string number(double x) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, x, std::chars_format::general, 6).ptr};
}

void require(bool holds, const std::string& rule, double value) {
    if (!holds) {
        throw std::invalid_argument(rule + ", not " + number(value) + ".");
    }
}

void require_non_negative(double value, const std::string& name) {
    require(value >= 0 && value < infinity, name + " must be a finite number that is not negative", value);
}

// Beyond these bounds squares of the coefficient of variation leave the range in which the formulas are accurate.
void require_cv(double value, const std::string& law) {
    require(value == 0 || (value >= 1e-5 && value <= 1e5),
            "The coefficient of variation of a " + law + " law must be 0 or lie between 1e-5 and 1e5", value);
}

void require_positive(double value, const std::string& name) {
    require(value > 0 && value < infinity, name + " must be a finite number above 0", value);
}

}  // namespace

// ---- the law behind a Distribution ----

struct Distribution::Law {
    laws::Payload payload;
    double low, high;  // the ends of the support
    std::string description;
    double mean, second_moment;

    static Distribution make(laws::Payload payload, double low, double high, std::string description) {
        Law law{std::move(payload), low, high, std::move(description), 0, 0};
        law.mean = law.moment_below(1, infinity);
        law.second_moment = law.moment_below(2, infinity);
        return wrap(std::move(law));
    }
    static Distribution wrap(Law law) { return Distribution(std::make_shared<const Law>(std::move(law))); }
    static const Law& of(const Distribution& distribution) { return *distribution.law_; }

    double moment_below(int k, double c) const {
        return laws::on_law(payload, [k, c](const auto& law) { return law.moment_below(k, c); });
    }
};

// E[min(X, cap)^k 1{min(X, cap) <= c}].
double laws::Clipped::moment_below(int k, double c) const {
    const double part = Distribution::Law::of(of).moment_below(k, std::min(c, cap));
    return c < cap ? part : part + power(cap, k) * (1.0 - of.cdf(cap));
}

double laws::Mixture::moment_below(int k, double c) const {
    double sum = 0;
    for (const Component& component : components) {
        sum += component.weight * Distribution::Law::of(component.law).moment_below(k, c);
    }
    return sum;
}

double Distribution::sample(Draw& draw) const {
    if (law_->low == law_->high) {
        return law_->low;
    }
    return laws::on_law(law_->payload, [&draw](const auto& law) {
        if constexpr (requires { law.of_uniform(0.5); }) {
            return law.of_uniform(draw.uniform());
        } else {
            return law.sample(draw);
        }
    });
}

void Distribution::sample(const RandomStream& stream, std::uint64_t first, std::span<double> samples) const {
    if (law_->low == law_->high) {
        std::fill(samples.begin(), samples.end(), law_->low);
        return;
    }
    laws::on_law(law_->payload, [&](const auto& law) {
        if constexpr (requires { law.of_uniforms(samples); }) {
            stream.uniforms(first, samples);
            law.of_uniforms(samples);
        } else if constexpr (requires { law.of_uniform(0.5); }) {
            stream.uniforms(first, samples);
            for (double& sample : samples) {
                sample = law.of_uniform(sample);
            }
        } else if constexpr (requires { law.sample(stream, first, samples); }) {
            law.sample(stream, first, samples);
        } else {
            for (double& sample : samples) {
                Draw draw(stream, first++);
                sample = law.sample(draw);
            }
        }
    });
}

double Distribution::cdf(double x) const {
    return laws::on_law(law_->payload, [x](const auto& law) { return law.cdf(x); });
}

double Distribution::mean() const {
    return law_->mean;
}

double Distribution::second_moment() const {
    return law_->second_moment;
}

double Distribution::maximum() const {
    return law_->high;
}

bool Distribution::is_constant() const {
    return law_->low == law_->high;
}

std::string Distribution::describe() const {
    return law_->description;
}

// ---- factories ----

Distribution Distribution::constant(double value) {
    require_non_negative(value, "The value of a constant law");
    return Law::make(laws::Uniform{value, value}, value, value, "constant(" + number(value) + ")");
}

Distribution Distribution::uniform(double low, double high) {
    require_non_negative(low, "The lower end of a uniform law");
    require(high >= low && high < infinity, "The upper end of a uniform law must be finite and not below the lower end",
            high);
    return Law::make(laws::Uniform{low, high}, low, high, "uniform(" + number(low) + " to " + number(high) + ")");
}

// A scale family with mean 0, or with no spread, is a constant.

Distribution Distribution::exponential(double mean) {
    require_non_negative(mean, "The mean of an exponential law");
    return mean == 0 ? constant(0)
                     : Law::make(laws::Exponential{mean}, 0, infinity, "exponential(mean " + number(mean) + ")");
}

Distribution Distribution::lognormal(double mean, double cv) {
    require_non_negative(mean, "The mean of a lognormal law");
    require_cv(cv, "lognormal");
    if (mean == 0 || cv == 0) {
        return constant(mean);
    }
    const double variance_of_log = portable::log1p(cv * cv);
    return Law::make(laws::Lognormal{portable::log(mean) - 0.5 * variance_of_log, std::sqrt(variance_of_log)}, 0,
                     infinity, "lognormal(mean " + number(mean) + ", cv " + number(cv) + ")");
}

Distribution Distribution::lognormal_from_quantiles(double p50, double p99) {
    require_positive(p50, "The median of a lognormal law");
    require(p99 >= p50 && p99 < infinity,
            "The 99th percentile of a lognormal law must be finite and not below its median", p99);
    if (p99 == p50) {
        return constant(p50);
    }
    const double sigma = (portable::log(p99) - portable::log(p50)) / portable::normal_quantile(0.99);
    return Law::make(laws::Lognormal{portable::log(p50), sigma}, 0, infinity,
                     "lognormal(p50 " + number(p50) + ", p99 " + number(p99) + ")");
}

Distribution Distribution::gamma(double mean, double cv) {
    require_non_negative(mean, "The mean of a gamma law");
    require_cv(cv, "gamma");
    if (mean == 0 || cv == 0) {
        return constant(mean);
    }
    return Law::make(laws::Gamma{1 / (cv * cv), mean * cv * cv}, 0, infinity,
                     "gamma(mean " + number(mean) + ", cv " + number(cv) + ")");
}

Distribution Distribution::weibull(double scale, double shape) {
    require_positive(scale, "The scale of a Weibull law");
    // At a shape of 0.02 the second moment is already Gamma(101) scale^2, about 1e158.
    require(shape >= 0.02 && shape < infinity, "The shape of a Weibull law must be at least 0.02", shape);
    return Law::make(laws::Weibull{scale, shape}, 0, infinity,
                     "weibull(scale " + number(scale) + ", shape " + number(shape) + ")");
}

Distribution Distribution::pareto(double minimum, double shape) {
    require_positive(minimum, "The minimum of a Pareto law");
    require_positive(shape, "The shape of a Pareto law");
    return Law::make(laws::Pareto{minimum, shape}, minimum, infinity,
                     "pareto(minimum " + number(minimum) + ", shape " + number(shape) + ")");
}

Distribution Distribution::mixture(std::vector<std::pair<double, Distribution>> components) {
    double total = 0;
    for (const auto& [weight, law] : components) {
        require_non_negative(weight, "The weight of a mixture's component");
        total += weight;
    }
    require(total > 0 && total < infinity, "The weights of a mixture must have a finite sum above 0", total);
    laws::Mixture mixture;
    double low = infinity;
    double high = 0;
    std::string description;
    for (auto& [weight, law] : components) {
        if (weight > 0) {
            low = std::min(low, law.law_->low);
            high = std::max(high, law.law_->high);
            description += (description.empty() ? "mixture(" : ", ") + number(weight) + " x " + law.describe();
            mixture.components.push_back({weight / total, std::move(law)});
        }
    }
    return Law::make(std::move(mixture), low, high, description + ")");
}

Distribution Distribution::empirical(std::vector<double> values) {
    if (values.empty()) {
        throw std::invalid_argument("An empirical law needs at least one value.");
    }
    for (const double value : values) {
        require_non_negative(value, "Each value of an empirical law");
    }
    std::sort(values.begin(), values.end());
    const double low = values.front();
    const double high = values.back();
    std::string description =
        "empirical(" + std::to_string(values.size()) + " values from " + number(low) + " to " + number(high) + ")";
    return Law::make(laws::Empirical{std::move(values)}, low, high, std::move(description));
}

Distribution Distribution::quantile_table(std::vector<std::pair<double, double>> table) {
    if (table.size() < 2 || table.front().first != 0 || table.back().first != 1) {
        throw std::invalid_argument("A quantile table must start at probability 0 and end at probability 1.");
    }
    for (std::size_t i = 0; i < table.size(); ++i) {
        require_non_negative(table[i].second, "Each value of a quantile table");
        if (i > 0) {
            require(table[i].first >= table[i - 1].first, "The probabilities of a quantile table must not decrease",
                    table[i].first);
            require(table[i].second >= table[i - 1].second, "The values of a quantile table must not decrease",
                    table[i].second);
        }
    }
    // Of several values at probability 0 only the last occurs, at probability 1 only the first.
    const auto first = std::find_if(table.begin(), table.end(), [](const auto& point) { return point.first > 0; }) - 1;
    const auto end = std::find_if(table.begin(), table.end(), [](const auto& point) { return point.first == 1; }) + 1;
    laws::QuantileTable law{{first, end}};
    const double low = law.points.front().second;
    const double high = law.points.back().second;
    std::string description =
        "quantile_table(" + std::to_string(table.size()) + " points from " + number(low) + " to " + number(high) + ")";
    return Law::make(std::move(law), low, high, std::move(description));
}

// ---- truncation ----

namespace {

// `of` given that it lies at or below `cap`, where that has positive probability. The condition is pushed down to the
// laws that can invert their cdf, so no sampler ever has to wait for an unlikely value.
Distribution conditioned(const Distribution& of, double cap);

struct Conditioner {
    const Distribution& whole;
    double cap;

    template <class Base>
    Distribution operator()(const Base& law) const {
        const double mass = law.cdf(cap);
        return Distribution::Law::make(laws::AnyResampled{laws::Resampled<Base>{law, cap, mass}},
                                       Distribution::Law::of(whole).low, cap, "");
    }
    template <class Base>
    Distribution operator()(const laws::Resampled<Base>& law) const {
        return (*this)(law.of);
    }
    Distribution operator()(const laws::Uniform& law) const { return Distribution::uniform(law.low, cap); }
    Distribution operator()(const laws::Clipped& law) const { return conditioned(law.of, cap); }
    Distribution operator()(const laws::Mixture& law) const {
        std::vector<std::pair<double, Distribution>> components;
        for (const auto& [weight, component] : law.components) {
            if (const double mass = component.cdf(cap); mass > 0) {
                components.emplace_back(weight * mass, conditioned(component, cap));
            }
        }
        return Distribution::mixture(std::move(components));
    }
    Distribution operator()(const laws::Empirical& law) const {
        const auto end = law.values.begin() + static_cast<std::ptrdiff_t>(law.count_below(cap));
        return Distribution::empirical({law.values.begin(), end});
    }
    Distribution operator()(const laws::QuantileTable& law) const {
        auto points = law.points_below(cap);
        const double mass = points.back().first;
        for (auto& [probability, value] : points) {
            probability /= mass;
        }
        return Distribution::quantile_table(std::move(points));
    }
};

Distribution conditioned(const Distribution& of, double cap) {
    return cap >= of.maximum() ? of : laws::on_law(Distribution::Law::of(of).payload, Conditioner{of, cap});
}

}  // namespace

Distribution Distribution::truncated(Distribution of, double cap, TruncateMode mode) {
    require_non_negative(cap, "The cap of a truncated law");
    std::string description = "truncated(" + of.describe() + ", at most " + number(cap) +
                              (mode == TruncateMode::clip ? ", clipped)" : ", resampled)");
    if (mode == TruncateMode::clip) {
        const double low = std::min(of.law_->low, cap);
        const double high = std::min(of.law_->high, cap);
        return Law::make(laws::Clipped{std::move(of), cap}, low, high, std::move(description));
    }
    if (!(of.cdf(cap) > 0)) {
        throw std::invalid_argument("A law cannot be resampled below a cap of " + number(cap) + ": " + of.describe() +
                                    " never takes such a value.");
    }
    Law law = Law::of(conditioned(of, cap));
    law.description = std::move(description);
    return Law::wrap(std::move(law));
}

}  // namespace millrace
