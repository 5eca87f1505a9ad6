#include "sim/engine/portable_math.h"

#include <algorithm>
#include <cmath>

// std::sqrt, std::fabs and std::copysign are exact (correctly rounded) by IEEE 754; nothing else of the C library is
// used.

namespace millrace::portable {

namespace {

// ---- tables, computed by the compiler with 64-bit significands, so they too are the same everywhere ----

constexpr long double log2_long = 0.693147180559945309417232121458176568L;

// 2 artanh((x - 1) / (x + 1)), for x within a factor 1.5 of 1.
constexpr long double log_long(long double x) {
    const long double t = (x - 1) / (x + 1);
    long double sum = 0;
    for (int n = 41; n > 0; n -= 2) {
        sum = sum * t * t + 1.0L / n;
    }
    return 2 * t * sum;
}

constexpr long double exp_long(long double x) {
    long double sum = 1;
    for (int n = 25; n > 0; --n) {
        sum = 1 + sum * x / n;
    }
    return sum;
}

constexpr std::array<detail::LogEntry, 128> make_log_table() {
    std::array<detail::LogEntry, 128> table{};
    for (std::uint64_t i = 0; i < 128; ++i) {
        const auto middle = std::bit_cast<double>(detail::log_origin + (i << 45) + (std::uint64_t{1} << 44));
        const double inverse = static_cast<double>(static_cast<int>(4096 / middle + 0.5)) / 4096;
        const long double log_c = -log_long(inverse);
        const double high = static_cast<double>(static_cast<std::int64_t>(log_c * 0x1p42L)) * 0x1p-42;
        table[i] = {inverse, high, static_cast<double>(log_c - high), 0.0};
    }
    return table;
}

constexpr std::array<detail::ExpEntry, 128> make_exp_table() {
    std::array<detail::ExpEntry, 128> table{};
    for (std::size_t j = 0; j < 128; ++j) {
        const long double value = exp_long(static_cast<long double>(j) / 128 * log2_long);
        const auto high = static_cast<double>(value);
        table[j] = {high, static_cast<double>(value - high)};
    }
    return table;
}

constexpr double pi = 3.141592653589793238;

// The value with the lower half of the significand cleared: products of two such values are exact.
double upper_half(double x) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0xfffffffff8000000u);
}

// exp(-scale x^2) for scale 1 or 1/2, without the rounding error of the square.
double gaussian(double x, double scale) {
    const double high = upper_half(x);
    return detail::exp_corrected(-scale * high * high, -scale * (x - high) * (x + high));
}

}  // namespace

namespace detail {

constinit const std::array<LogEntry, 128> log_table = make_log_table();
constinit const std::array<ExpEntry, 128> exp_table = make_exp_table();

TwoDoubles log_of_special(double x) {
    if (x == 0.0) {
        return {-infinity, 0.0};
    }
    if (x > 0.0 && x < infinity) {
        return log_of_normal(x * 0x1p54, -54);  // subnormal
    }
    return {x == infinity ? infinity : not_a_number, 0.0};
}

double exp_of_special(double x, double correction) {
    if (x < -746.0) {
        return 0.0;
    }
    if (!(x < 710.0)) {
        return x > 0.0 ? infinity : not_a_number;
    }
    // At either end of the range the power of two is applied in two steps, so that only the last can round.
    ExpArgument argument = reduce_exp(x);
    argument.r += correction;
    const auto exponent = static_cast<int>(static_cast<std::int32_t>(argument.k128_plus_j) >> 7);
    const int half = exponent / 2;
    const auto power_of_two = [](int k) { return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52); };
    return exp_of_reduced(argument) * power_of_two(half) * power_of_two(exponent - half);
}

}  // namespace detail

// ---- powers ----

// exp(y log x), with the logarithm to about 68 bits and its product with y kept as a sum of two doubles.
double pow(double x, double y) {
    if (y == 0.0 || x == 1.0) {
        return 1.0;
    }
    if (!(x > 0.0 && x < detail::infinity)) {
        if (x == 0.0 || x == detail::infinity) {
            return (x == 0.0) == (y > 0.0) ? 0.0 : detail::infinity;
        }
        return detail::not_a_number;
    }
    const detail::TwoDoubles parts = detail::log_parts(x);
    const double log_high = parts.high + parts.low;
    const double log_low = parts.low - (log_high - parts.high);
    const double product = y * log_high;
    if (!(std::fabs(product) < 746.0)) {
        return exp(product);
    }
    const double y1 = upper_half(y);
    const double y2 = y - y1;
    const double l1 = upper_half(log_high);
    const double l2 = log_high - l1;
    const double error = ((y1 * l1 - product) + y1 * l2 + y2 * l1) + y2 * l2;
    return detail::exp_corrected(product, error + y * log_low);
}

double log1p(double x) {
    if (!(x > -1.0 && x < detail::infinity)) {
        return log(1.0 + x);
    }
    const double sum = 1.0 + x;
    const double lost = x < 1.0 ? x - (sum - 1.0) : 1.0 - (sum - x);
    const detail::TwoDoubles parts = detail::log_parts(sum);
    return parts.high + (parts.low + lost / sum);
}

double expm1(double x) {
    if (!(std::fabs(x) < 0.5)) {
        return exp(x) - 1.0;
    }
    double sum = 0.0;  // x/2! + x^2/3! + ...
    for (int n = 16; n >= 2; --n) {
        sum = x / n * (1.0 + sum);
    }
    return x + x * sum;
}

// ---- the normal distribution ----

namespace {

// erfc(x) for x >= 1/2, given exp(-x^2). The trapezoidal rule of step h = 1/2 for
// erfc(x) = x exp(-x^2) / pi * integral of exp(-t^2) / (t^2 + x^2) over the real line, whose error is the residue of
// the poles at +- i x (subtracted while they lie within pi / h) and a remainder of about exp(-(pi / h)^2) = 7e-18.
double erfc_upper(double x, double exp_minus_square) {
    constexpr std::array<double, 12> weights = [] {
        std::array<double, 12> w{};
        for (std::size_t n = 1; n <= w.size(); ++n) {
            long double power = 1;  // exp(-(n h)^2)
            for (std::size_t i = 0; i < n * n; ++i) {
                power *= exp_long(-0.25L);
            }
            w[n - 1] = static_cast<double>(power);
        }
        return w;
    }();
    const double square = x * x;
    double sum = 0.0;
    for (std::size_t n = weights.size(); n > 0; --n) {
        const double node = 0.5 * static_cast<double>(n);
        sum += weights[n - 1] / (node * node + square);
    }
    const double trapezoid = x * exp_minus_square / (2.0 * pi) * (1.0 / square + 2.0 * sum);
    return x < 2.0 * pi ? trapezoid - 2.0 / expm1(4.0 * pi * x) : trapezoid;
}

double erf_series(double x) {
    const double square = x * x;
    double term = 1.0;
    double sum = 1.0;
    for (int n = 1; n <= 14; ++n) {
        term *= -square / n;
        sum += term / (2 * n + 1);
    }
    return 1.128379167095512574 * x * sum;  // 2 / sqrt(pi)
}

double erfc_given(double x, double exp_minus_square) {
    if (std::fabs(x) < 0.5) {
        return 1.0 - erf_series(x);
    }
    if (x > 28.0 || x < -6.0) {
        return x > 0.0 ? 0.0 : 2.0;
    }
    return x > 0.0 ? erfc_upper(x, exp_minus_square) : 2.0 - erfc_upper(-x, exp_minus_square);
}

template <std::size_t n>
double polynomial(const std::array<double, n>& ascending, double x) {
    double sum = ascending[n - 1];
    for (std::size_t i = n - 1; i > 0; --i) {
        sum = sum * x + ascending[i - 1];
    }
    return sum;
}

/// The same for seven degrees, in pairs: a third of the latency of Horner's rule.
double polynomial(const std::array<double, 8>& c, double x) {
    const double x2 = x * x;
    const double low = (c[0] + c[1] * x) + (c[2] + c[3] * x) * x2;
    const double high = (c[4] + c[5] * x) + (c[6] + c[7] * x) * x2;
    return low + high * (x2 * x2);
}

}  // namespace

double erfc(double x) {
    return erfc_given(x, gaussian(x, 1.0));
}

double normal_cdf(double z) {
    return 0.5 * erfc_given(-z * 0.70710678118654752440, gaussian(z, 0.5));
}

// The rational approximations of M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution",
// Applied Statistics 37 (1988), routine PPND16: about 1e-16 relative.
namespace {

constexpr double centre_of_normal = 0.425;  // half the width of the middle part

// For p = 1/2 + q in the middle part.
inline double normal_quantile_at_centre(double q) {
    constexpr std::array<double, 8> centre_top = {
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
        4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3};
    constexpr std::array<double, 8> centre_bottom = {1.0,
                                                     4.2313330701600911252e1,
                                                     6.8718700749205790830e2,
                                                     5.3941960214247511077e3,
                                                     2.1213794301586595867e4,
                                                     3.9307895800092710610e4,
                                                     2.8729085735721942674e4,
                                                     5.2264952788528545610e3};
    const double r = 0.180625 - q * q;
    return q * polynomial(centre_top, r) / polynomial(centre_bottom, r);
}

// For the other p.
double normal_quantile_in_tail(double p) {
    constexpr std::array<double, 8> tail_top = {
        1.42343711074968357734e0, 4.63033784615654529590e0,  5.76949722146069140550e0,  3.64784832476320460504e0,
        1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
    constexpr std::array<double, 8> tail_bottom = {1.0,
                                                   2.05319162663775882187e0,
                                                   1.67638483018380384940e0,
                                                   6.89767334985100004550e-1,
                                                   1.48103976427480074590e-1,
                                                   1.51986665636164571966e-2,
                                                   5.47593808499534494600e-4,
                                                   1.05075007164441684324e-9};
    constexpr std::array<double, 8> far_top = {
        6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,  2.96560571828504891230e-1,
        2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
    constexpr std::array<double, 8> far_bottom = {1.0,
                                                  5.99832206555887937690e-1,
                                                  1.36929880922735805310e-1,
                                                  1.48753612908506148525e-2,
                                                  7.86869131145613259100e-4,
                                                  1.84631831751005468180e-5,
                                                  1.42151175831644588870e-7,
                                                  2.04426310338993978564e-15};
    const double tail = std::min(p, 1.0 - p);
    if (!(tail > 0.0)) {
        return tail == 0.0 ? std::copysign(detail::infinity, p - 0.5) : detail::not_a_number;
    }
    const double r = std::sqrt(-log(tail));
    const double z = r <= 5.0 ? polynomial(tail_top, r - 1.6) / polynomial(tail_bottom, r - 1.6)
                              : polynomial(far_top, r - 5.0) / polynomial(far_bottom, r - 5.0);
    return std::copysign(z, p - 0.5);
}

}  // namespace

double normal_quantile(double p) {
    const double q = p - 0.5;
    return std::fabs(q) <= centre_of_normal ? normal_quantile_at_centre(q) : normal_quantile_in_tail(p);
}

void normal_quantiles(std::span<double> p) {
    struct Tail {
        std::size_t index;
        double p;
    };
    constexpr std::size_t block = 64;
    std::array<Tail, block> tails;
    for (; !p.empty(); p = p.subspan(std::min(block, p.size()))) {
        // Which part it is nobody can guess: all are taken for middle ones, side by side, and those that are not are
        // mended afterwards.
        const std::size_t n = std::min(block, p.size());
        std::size_t in_tail = 0;
        for (std::size_t i = 0; i < n; ++i) {
            tails[in_tail] = {i, p[i]};
            in_tail += std::fabs(p[i] - 0.5) <= centre_of_normal ? 0 : 1;
        }
        for (std::size_t i = 0; i < n; ++i) {
            p[i] = normal_quantile_at_centre(p[i] - 0.5);
        }
        for (std::size_t i = 0; i < in_tail; ++i) {
            p[tails[i].index] = normal_quantile_in_tail(tails[i].p);
        }
    }
}

// ---- the gamma function ----

namespace {

// log Gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) for x >= 10: Stirling's series, B_2k / (2k (2k - 1) x^(2k-1)).
double stirling_correction(double x) {
    constexpr std::array<double, 8> coefficients = {1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
                                                    1.0 / 1188, -691.0 / 360360.0, 1.0 / 156,  -3617.0 / 122400.0};
    return polynomial(coefficients, 1.0 / (x * x)) / x;
}

// Gamma(x + n) / Gamma(x) for the smallest n that brings x up to 10, which it does.
double rise_to_ten(double& x) {
    double product = 1.0;
    for (; x < 10.0; x += 1.0) {
        product *= x;
    }
    return product;
}

// log(x / a) - (x - a) / a without cancellation near x = a: with m = (x - a) / a and t = m / (2 + m),
// log(1 + m) - m = 2 (t + t^3/3 + t^5/5 + ...) - m, and 2 t - m = -m t.
double log_minus_linear(double x, double a) {
    const double m = (x - a) / a;
    if (std::fabs(m) > 0.4) {
        return log(x / a) - m;
    }
    const double t = m / (2.0 + m);
    const double t2 = t * t;
    double sum = 0.0;
    for (int n = 25; n >= 3; n -= 2) {
        sum = sum * t2 + 1.0 / n;
    }
    return 2.0 * t * t2 * sum - m * t;
}

// x^a exp(-x) / Gamma(a + 1). For large a its factors are huge while their product is about a normal density.
double poisson_weight(double a, double x) {
    if (a < 10.0) {
        return pow(x, a) * exp(-x) / gamma(a + 1.0);
    }
    return exp(a * log_minus_linear(x, a) - stirling_correction(a)) / std::sqrt(2.0 * pi * a);
}

}  // namespace

double log_gamma(double x) {
    const double product = rise_to_ten(x);
    return ((x - 0.5) * log(x) - x + 0.918938533204672742) + stirling_correction(x) - log(product);
}

double gamma(double x) {
    const double product = rise_to_ten(x);
    const double root = pow(x, 0.5 * (x - 0.5));  // its square alone could overflow
    return root * exp(-x) * root * exp(stirling_correction(x)) * 2.506628274631000502 / product;  // sqrt(2 pi)
}

double gamma_p(double a, double x) {
    constexpr double tolerance = 0x1p-56;
    if (!(x > 0.0)) {
        return x <= 0.0 ? 0.0 : x;
    }
    if (x == detail::infinity) {
        return 1.0;
    }
    const double weight = poisson_weight(a, x);
    if (weight == 0.0) {
        return x < a ? 0.0 : 1.0;
    }
    if (x < a + 1.0) {  // weight (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...), all terms positive
        double term = 1.0;
        double sum = 1.0;
        for (double n = a + 1.0; term > tolerance * sum; n += 1.0) {
            term *= x / n;
            sum += term;
        }
        return weight * sum;
    }
    // Q(a, x) = a weight / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))), evaluated from the
    // front by Lentz's method with the ratios of successive numerators and of successive denominators.
    double b = x + 1.0 - a;
    double numerator_ratio = detail::infinity;
    double denominator_ratio = 1.0 / b;
    double value = denominator_ratio;
    for (double n = 1.0;; n += 1.0) {
        const double coefficient = n * (a - n);
        b += 2.0;
        denominator_ratio = 1.0 / (b + coefficient * denominator_ratio);
        numerator_ratio = b + coefficient / numerator_ratio;
        const double factor = numerator_ratio * denominator_ratio;
        value *= factor;
        if (std::fabs(factor - 1.0) < 0x1p-52) {
            break;
        }
    }
    return 1.0 - a * weight * value;
}

}  // namespace millrace::portable
