// Elementary and special functions whose results are the same bits on every x86-64 machine.
//
// The C library picks CPU-specific variants of log, exp and pow, so a sample drawn through it could differ between two
// machines in the last bit, and with it the order of two events. These use only IEEE additions, multiplications,
// divisions and square roots (the project is built without contraction to fused multiply-add).
//
// log and exp are within 1 ulp, and so is pow for exponents below 100 (else 1e-14 relative); the special functions are
// good to about 1e-15 relative, 1e-14 where an argument makes the problem ill-conditioned.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>

namespace millrace::portable {

namespace detail {

// log(2) = log2_high + log2_low, the high part a multiple of 2^-42: k log2_high is exact for every binary exponent k.
inline constexpr double log2_high = 0x1.62e42fefa38p-1;
inline constexpr double log2_low = 0x1.ef35793c7673p-45;

// One entry per 1/128 of a binade: `inverse` is about 1/c for the middle c of the interval, with so few bits that its
// product with half a significand is exact; log_high + log_low = -log(inverse), the high part a multiple of 2^-42.
struct LogEntry {
    double inverse, log_high, log_low;
    double padding;
};
extern const std::array<LogEntry, 128> log_table;

// 2^(j/128) as a sum of two doubles.
struct ExpEntry {
    double high, low;
};
extern const std::array<ExpEntry, 128> exp_table;

// Significands are taken from [0.705, 1.41), with 1 in the middle of an interval whose entry is {1, 0, 0}.
inline constexpr std::uint64_t log_origin = 0x3fe6900000000000u;

/// An unevaluated sum; |low| is at most about half an ulp of high.
struct TwoDoubles {
    double high, low;
};

// log(x) for a positive normal x plus `exponent` times log(2).
inline TwoDoubles log_of_normal(double x, std::int64_t exponent) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t offset = bits - log_origin;
    const LogEntry& entry = log_table[(offset >> 45) & 127];
    const double k = static_cast<double>((static_cast<std::int64_t>(offset) >> 52) + exponent);
    const std::uint64_t significand = bits - (offset & 0xfff0000000000000u);
    const double z = std::bit_cast<double>(significand);
    // r = z * inverse - 1 to full precision: the first product is exact, and so is its difference from 1.
    const double z_high = std::bit_cast<double>(significand & 0xfffffffff8000000u);
    const double r = (z_high * entry.inverse - 1.0) + (z - z_high) * entry.inverse;
    // log(1 + r) = r + r^2 p(r), |r| < 2^-7.9: Taylor's terms to r^7 leave 2^-58 relative.
    const double r2 = r * r;
    const double p = (-1.0 / 2 + r * (1.0 / 3)) + r2 * ((-1.0 / 4 + r * (1.0 / 5)) + r2 * (-1.0 / 6 + r * (1.0 / 7)));
    const double base = k * log2_high + entry.log_high;  // exact
    const double high = base + r;
    return {high, (base - high + r) + (k * log2_low + entry.log_low + r2 * p)};
}

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

TwoDoubles log_of_special(double x);

inline TwoDoubles log_parts(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    if (bits - 0x0010000000000000u >= 0x7fe0000000000000u) [[unlikely]] {  // zero, subnormal, negative, infinite, NaN
        return log_of_special(x);
    }
    return log_of_normal(x, 0);
}

// x = (128 k + j) log(2) / 128 + r with |r| < 0.0028.
struct ExpArgument {
    double r;
    std::uint64_t k128_plus_j;  // as an unsigned number that wraps; its low bits are those of a signed one
};

// For |x| < 1000.
inline ExpArgument reduce_exp(double x) {
    constexpr double step_high = 0x1.62e42fefp-8;               // log(2) / 128 to a multiple of 2^-40 ...
    constexpr double step_low = 0x1.473de6af278edp-41;          // ... and the rest: n step_high is exact for n < 2^18
    const double shifted = x * 0x1.71547652b82fep7 + 0x1.8p52;  // rounds to the nearest integer in the low bits
    const double n = shifted - 0x1.8p52;
    return {(x - n * step_high) - n * step_low, std::bit_cast<std::uint64_t>(shifted)};
}

// exp(r) 2^(j/128): Taylor's terms to r^5 leave 2^-60 relative.
inline double exp_of_reduced(ExpArgument argument) {
    const double r = argument.r;
    const double r2 = r * r;
    const double p = r + r2 * ((1.0 / 2 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120)));
    const ExpEntry& entry = exp_table[argument.k128_plus_j & 127];
    return entry.high + (entry.low + entry.high * p);
}

double exp_of_special(double x, double correction);

// exp(x) (1 + correction) for a tiny correction.
inline double exp_corrected(double x, double correction) {
    if (!(x > -708.0 && x < 709.0)) [[unlikely]] {
        return exp_of_special(x, correction);
    }
    ExpArgument argument = reduce_exp(x);
    argument.r += correction;
    const std::uint64_t power_of_two = ((argument.k128_plus_j >> 7) << 52) + 0x3ff0000000000000u;
    return exp_of_reduced(argument) * std::bit_cast<double>(power_of_two);
}

}  // namespace detail

/// Natural logarithm: -infinity at 0, NaN below.
inline double log(double x) {
    const detail::TwoDoubles parts = detail::log_parts(x);
    return parts.high + parts.low;
}

inline double exp(double x) {
    return detail::exp_corrected(x, 0.0);
}

/// x^y for x >= 0; NaN for a negative x. 0^0 is 1.
double pow(double x, double y);

/// log(1 + x) and exp(x) - 1 without loss for small x.
double log1p(double x);
double expm1(double x);

/// 1 - erf(x), with small relative error in the tail.
double erfc(double x);
/// P(Z <= z) for a standard normal Z, with small relative error in the lower tail.
double normal_cdf(double z);
/// The z with normal_cdf(z) = p; infinite at 0 and 1.
double normal_quantile(double p);
/// The same of each number, in place: the same bits in a third of the time.
void normal_quantiles(std::span<double> p);

/// log Gamma(x) for x > 0.
double log_gamma(double x);
/// Gamma(x) for x > 0; infinite above 171.6.
double gamma(double x);
/// Regularised lower incomplete gamma function P(a, x) = P(G <= x) for a gamma variable G of shape a > 0 and scale 1.
double gamma_p(double a, double x);

}  // namespace millrace::portable
