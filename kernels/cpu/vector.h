// Vectors of numbers as the compiler offers them: arithmetic and comparisons are those of its vector extension, and
// what it has no operator for is here. One type serves all instruction sets; the widest registers set `native_lanes`.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/math.h"

namespace millrace {

#if defined(__AVX512F__)
inline constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr std::size_t vector_bytes = 32;
#else
inline constexpr std::size_t vector_bytes = 16;
#endif

template <typename Real>
inline constexpr int native_lanes = static_cast<int>(vector_bytes / sizeof(Real));

template <typename Real, int N>
struct VectorOf {
    using Integer = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
    typedef Real Type __attribute__((vector_size(sizeof(Real) * static_cast<std::size_t>(N))));
    typedef Integer Integers __attribute__((vector_size(sizeof(Real) * static_cast<std::size_t>(N))));
};
template <typename Real, int N>
using Vector = typename VectorOf<Real, N>::Type;

template <int N, typename Real>
inline Vector<Real, N> load_vector(const Real* from) {
    Vector<Real, N> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <typename V, typename Real>
inline void store_vector(Real* to, V v) {
    std::memcpy(to, &v, sizeof v);
}

template <int N, typename Real>
inline Vector<Real, N> splat(Real value) {
    return value - Vector<Real, N>{};
}

/// 0, 1, ..., N - 1.
template <typename Real, int N>
inline typename VectorOf<Real, N>::Integers lane_numbers() {
    typename VectorOf<Real, N>::Integers lanes;
    for (int i = 0; i < N; ++i) {
        lanes[i] = i;
    }
    return lanes;
}

namespace vector_detail {

/// Lane i of the result is the sum of lanes 2 i and 2 i + 1 of `a` followed by `b`.
template <typename Real, int N, int... I>
inline Vector<Real, N> add_neighbours(Vector<Real, N> a, Vector<Real, N> b, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, b, 2 * I...) + __builtin_shufflevector(a, b, 2 * I + 1 ...);
}

template <typename Real, int N, typename Combine, int... I>
inline Real fold(Vector<Real, N> v, const Combine& combine, std::integer_sequence<int, I...>) {
    if constexpr (N == 1) {
        return v[0];
    } else {
        constexpr int half = N / 2;
        const Vector<Real, N> other = __builtin_shufflevector(v, v, (I < half ? I + half : I)...);
        const Vector<Real, N> folded = combine(v, other);
        if constexpr (half == 1) {
            return folded[0];
        } else {
            Vector<Real, half> low;
            std::memcpy(&low, &folded, sizeof low);
            return fold<Real, half>(low, combine, std::make_integer_sequence<int, half>{});
        }
    }
}

}  // namespace vector_detail

template <typename Real, int N>
inline Vector<Real, N> larger(Vector<Real, N> a, Vector<Real, N> b) {
    return a > b ? a : b;
}

template <typename Real, int N>
inline Real sum_of_lanes(Vector<Real, N> v) {
    return vector_detail::fold<Real, N>(
        v, [](auto a, auto b) { return a + b; }, std::make_integer_sequence<int, N>{});
}

template <typename Real, int N>
inline Real largest_lane(Vector<Real, N> v) {
    return vector_detail::fold<Real, N>(
        v, [](auto a, auto b) { return a > b ? a : b; }, std::make_integer_sequence<int, N>{});
}

/// Lane i of the result is the sum of the lanes of v[i]; v is overwritten.
template <typename Real, int N>
inline Vector<Real, N> sums_of_lanes(Vector<Real, N> (&v)[N]) {
    for (int left = N / 2; left > 0; left /= 2) {
        for (int i = 0; i < left; ++i) {
            v[i] = vector_detail::add_neighbours<Real, N>(v[2 * i], v[2 * i + 1], std::make_integer_sequence<int, N>{});
        }
    }
    return v[0];
}

/// in_order() of math.h for vectors, whose lanes the compiler's own barrier would take apart.
template <typename V>
inline V vector_in_order(V v) {
#if defined(__x86_64__)
    asm("" : "+v"(v));
    return v;
#else
    return in_order(v);
#endif
}

/// e^x of numbers that are not positive, as softmax has them: polynomial_exp() without its upper end.
template <int N>
inline Vector<float, N> exp_of_nonpositive(Vector<float, N> x) {
    constexpr float lowest = -87.33654f;
    const Vector<float, N> bounded = larger<float, N>(x, splat<N>(lowest));
    const auto power =
        __builtin_convertvector(bounded * 1.44269504088896341f - 0.5f, typename VectorOf<float, N>::Integers);
    const auto n = __builtin_convertvector(power, Vector<float, N>);
    const Vector<float, N> r = vector_in_order(bounded - n * 0.693359375f) - n * -2.12194440e-4f;
    Vector<float, N> series = r * 1.9875691500e-4f + 1.3981999507e-3f;
    series = series * r + 8.3334519073e-3f;
    series = series * r + 4.1665795894e-2f;
    series = series * r + 1.6666665459e-1f;
    series = series * r + 5.0000001201e-1f;
    const Vector<float, N> mantissa = vector_in_order(series * (r * r) + r) + 1.0f;
    const auto bits = (power + 127) << 23;
    Vector<float, N> factor;
    std::memcpy(&factor, &bits, sizeof factor);
    return x < lowest ? Vector<float, N>{} : mantissa * factor;
}

template <int N>
inline Vector<double, N> exp_of_nonpositive(Vector<double, N> x) {
    for (int i = 0; i < N; ++i) {
        x[i] = std::exp(x[i]);
    }
    return x;
}

}  // namespace millrace
