#include "sim/metrics/student_t.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/engine/portable_math.h"

namespace millrace {
namespace {

/// The continued fraction of the regularised incomplete beta function I_x(a, b) without the factor before it, by
/// Lentz's method (Abramowitz and Stegun 26.5.8). Converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
    constexpr int most_terms = 10'000;
    constexpr double tiny = 1e-300;  // stands for a denominator that vanishes
    const auto away_from_zero = [](double value) { return std::abs(value) < tiny ? tiny : value; };
    double c = 1.0;
    double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    double fraction = d;
    for (int m = 1; m <= most_terms; ++m) {
        const double n = m;
        const double even = n * (b - n) * x / ((a + 2.0 * n - 1.0) * (a + 2.0 * n));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        fraction *= c * d;
        const double odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + 2.0 * n + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        fraction *= c * d;
        if (std::abs(c * d - 1.0) < 1e-15) {
            break;
        }
    }
    return fraction;
}

}  // namespace

double student_t_tail(double t, std::int64_t degrees) {
    if (degrees < 1 || std::isnan(t)) {
        throw std::invalid_argument("Student's t needs at least one degree of freedom and a number");
    }
    if (t < 0.0) {
        return 1.0 - student_t_tail(-t, degrees);
    }
    if (std::isinf(t)) {
        return 0.0;
    }
    // P(T > t) = I_x(nu / 2, 1 / 2) / 2 with x = nu / (nu + t^2).
    const auto nu = static_cast<double>(degrees);
    const double a = nu / 2.0;
    const double b = 0.5;
    const double t2 = t * t;
    if (t2 == 0.0) {
        return 0.5;
    }
    const double ratio = t2 / nu;
    const double log_x = -portable::log1p(ratio);
    const double log_y = portable::log(ratio) + log_x;  // of 1 - x
    const double log_beta = portable::log_gamma(a) + portable::log_gamma(b) - portable::log_gamma(a + b);
    const double front = portable::exp(a * log_x + b * log_y - log_beta);
    const double x = 1.0 / (1.0 + ratio);
    if (x < (a + 1.0) / (a + b + 2.0)) {
        return 0.5 * front * beta_fraction(a, b, x) / a;
    }
    const double y = ratio / (1.0 + ratio);
    return 0.5 * (1.0 - front * beta_fraction(b, a, y) / b);
}

double student_t_quantile(double tail, std::int64_t degrees) {
    if (degrees < 1 || !(tail > 0.0 && tail < 1.0)) {
        throw std::invalid_argument("a quantile of Student's t needs a tail between 0 and 1 and a degree of freedom");
    }
    if (tail > 0.5) {
        return -student_t_quantile(1.0 - tail, degrees);
    }
    double low = 0.0;
    double high = 1.0;
    while (student_t_tail(high, degrees) > tail) {
        low = high;
        high *= 2.0;
        if (high > std::numeric_limits<double>::max() / 4.0) {
            throw std::invalid_argument("a quantile of Student's t this far out is beyond a double's range");
        }
    }
    while (high - low > 1e-13 * high) {
        const double middle = low + (high - low) / 2.0;
        (student_t_tail(middle, degrees) > tail ? low : high) = middle;
    }
    return low + (high - low) / 2.0;
}

}  // namespace millrace
