// The number types a backend computes with, and the conversions between them.
//
// A precision names two types. `Real` holds what must not lose digits: master weights, gradients, the residual stream,
// logits, log-probabilities, statistics. `Operand` holds what goes into matrix products. They differ only on a GPU.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)
#define MILLRACE_HOST_DEVICE __host__ __device__
#else
#define MILLRACE_HOST_DEVICE
#endif

namespace millrace {

/// A bfloat16 as it lies in memory: the upper half of a float. Arithmetic is done in float.
struct Bf16 {
    std::uint16_t bits = 0;
};

MILLRACE_HOST_DEVICE inline float to_float(Bf16 value) {
    const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
    float result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
}

/// Rounds to nearest, ties to even; a NaN stays one.
MILLRACE_HOST_DEVICE inline Bf16 to_bf16(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
    }
    return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

struct Float32 {  ///< the CPU
    using Real = float;
    using Operand = float;
    static constexpr const char* name = "fp32";
};
struct Float64 {  ///< the tests' reference
    using Real = double;
    using Operand = double;
    static constexpr const char* name = "fp64";
};
struct Mixed {  ///< the GPU
    using Real = float;
    using Operand = Bf16;
    static constexpr const char* name = "bf16 with fp32 master weights";
};

/// An operand as a number to compute with.
template <typename Real, typename Operand>
MILLRACE_HOST_DEVICE inline Real load(Operand value) {
    if constexpr (std::is_same_v<Operand, Bf16>) {
        return static_cast<Real>(to_float(value));
    } else {
        return static_cast<Real>(value);
    }
}

/// A computed number as an operand.
template <typename Operand, typename Real>
MILLRACE_HOST_DEVICE inline Operand store(Real value) {
    if constexpr (std::is_same_v<Operand, Bf16>) {
        return to_bf16(static_cast<float>(value));
    } else {
        return static_cast<Operand>(value);
    }
}

}  // namespace millrace
