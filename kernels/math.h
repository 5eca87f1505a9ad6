// exp, log and sqrt of the kernels.
//
// In float on the CPU these are polynomials without branches or calls, so that loops over them become vector code, and
// so that their bits do not depend on the C library. In double they are the C library's, and on a GPU CUDA's.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/precision.h"

namespace millrace {

/// `value`, computed before anything is done with it: kernel files are compiled with permission to reorder sums, and a
/// few sums (error-free splittings, cumulative distributions) must stay as written.
template <typename Real>
MILLRACE_HOST_DEVICE inline Real in_order(Real value) {
#if defined(__CUDA_ARCH__)
    return value;  // nvcc never reorders sums
#elif defined(__clang__)
    return __arithmetic_fence(value);
#elif defined(__GNUC__) && __GNUC__ >= 12
    return __builtin_assoc_barrier(value);
#else
    return value;
#endif
}

/// e^x for float, error below 2 units in the last place, after the single-precision routines of S. Moshier's Cephes
/// library. Results below 2^-126 are flushed to 0; above the largest float the result is infinity.
inline float polynomial_exp(float x) {
    constexpr float log2_e = 1.44269504088896341f;
    constexpr float ln2_high = 0.693359375f;  // few bits, so that its product with a small integer is exact
    constexpr float ln2_low = -2.12194440e-4f;
    constexpr float lowest = -87.33654f;
    constexpr float highest = 88.72283f;
    const float bounded = x < lowest ? lowest : (x > highest ? highest : x);
    const float scaled = bounded * log2_e;
    const auto power = static_cast<std::int32_t>(in_order(scaled + (scaled < 0.0f ? -0.5f : 0.5f)));
    const auto n = static_cast<float>(power);
    const float r = in_order(in_order(bounded - n * ln2_high) - n * ln2_low);
    float series = 1.9875691500e-4f;
    series = series * r + 1.3981999507e-3f;
    series = series * r + 8.3334519073e-3f;
    series = series * r + 4.1665795894e-2f;
    series = series * r + 1.6666665459e-1f;
    series = series * r + 5.0000001201e-1f;
    const float mantissa = in_order(series * (r * r) + r) + 1.0f;
    // 2^power in two factors, because 2^128 is not a float.
    const std::int32_t half = power >> 1;
    const auto first_bits = static_cast<std::uint32_t>(half + 127) << 23;
    const auto second_bits = static_cast<std::uint32_t>(power - half + 127) << 23;
    float first;
    float second;
    std::memcpy(&first, &first_bits, sizeof first);
    std::memcpy(&second, &second_bits, sizeof second);
    const float result = in_order(mantissa * first) * second;
    return x < lowest ? 0.0f : (x > highest ? HUGE_VALF : (x == x ? result : x));
}

/// Natural logarithm of a positive normal float, error below 2 units in the last place, after the same library.
inline float polynomial_log(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    // x = mantissa * 2^power with a mantissa in [sqrt(1/2), sqrt(2)).
    bits += 0x3f800000u - 0x3f3504f3u;
    const auto power = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 127);
    bits = (bits & 0x007fffffu) + 0x3f3504f3u;
    float mantissa;
    std::memcpy(&mantissa, &bits, sizeof mantissa);
    const float f = in_order(mantissa - 1.0f);
    const float square = f * f;
    float series = 7.0376836292e-2f;
    series = series * f - 1.1514610310e-1f;
    series = series * f + 1.1676998740e-1f;
    series = series * f - 1.2420140846e-1f;
    series = series * f + 1.4249322787e-1f;
    series = series * f - 1.6668057665e-1f;
    series = series * f + 2.0000714765e-1f;
    series = series * f - 2.4999993993e-1f;
    series = series * f + 3.3333331174e-1f;
    const float tail = in_order(in_order(series * square * f + power * -2.12194440e-4f) - 0.5f * square);
    return in_order(f + tail) + power * 0.693359375f;
}

MILLRACE_HOST_DEVICE inline float exp_of(float x) {
#if defined(__CUDA_ARCH__)
    return expf(x);
#else
    return polynomial_exp(x);
#endif
}
MILLRACE_HOST_DEVICE inline double exp_of(double x) {
    return std::exp(x);
}

MILLRACE_HOST_DEVICE inline float log_of(float x) {
#if defined(__CUDA_ARCH__)
    return logf(x);
#else
    return polynomial_log(x);
#endif
}
MILLRACE_HOST_DEVICE inline double log_of(double x) {
    return std::log(x);
}

MILLRACE_HOST_DEVICE inline float sqrt_of(float x) {
    return sqrtf(x);
}
MILLRACE_HOST_DEVICE inline double sqrt_of(double x) {
    return std::sqrt(x);
}

}  // namespace millrace
