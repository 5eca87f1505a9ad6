// From the row-major products of ops.h to the column-major record that cuBLASLt gets.
//
// cuBLASLt knows only column-major matrices. A dense row-major matrix [rows][columns] is the column-major matrix
// columns x rows of leading dimension `columns`, so every product is asked for transposed: y = x W^T as y^T = W x^T.
// All that can be got wrong about it is in this record, which tests carry out on the CPU.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/ops.h"

namespace millrace {

enum class ElementType : std::int32_t { bf16, fp32, fp64 };

template <typename Number>
constexpr ElementType element_type() {
    if constexpr (std::is_same_v<Number, Bf16>) {
        return ElementType::bf16;
    } else if constexpr (std::is_same_v<Number, float>) {
        return ElementType::fp32;
    } else {
        static_assert(std::is_same_v<Number, double>);
        return ElementType::fp64;
    }
}

constexpr std::size_t element_bytes(ElementType type) {
    return type == ElementType::bf16 ? 2 : type == ElementType::fp32 ? 4 : 8;
}

/// A matrix as it lies in memory, column-major: element (i, j) is number i + j * leading of its batch entry.
struct MatmulMatrix {
    int rows = 0;
    int columns = 0;
    int leading = 0;
    std::int64_t batch_stride = 0;  ///< in numbers, as cuBLASLt counts
    ElementType type = ElementType::fp32;
    std::uint32_t alignment = 0;  ///< bytes, of every batch entry; a power of two, at most 256

    auto operator<=>(const MatmulMatrix&) const = default;
};

/// C = op(A) op(B) + beta C for every batch entry, where op transposes or does nothing; sums are made in fp32 (fp64 for
/// fp64 matrices). Everything that cuBLASLt chooses its algorithm by, hence the key of a cached plan.
struct MatmulRecord {
    int m = 0;  ///< rows of C
    int n = 0;  ///< columns of C
    int k = 0;  ///< length of the sums
    bool transpose_a = false;
    bool transpose_b = false;
    int batch = 1;
    float beta = 0.0f;
    MatmulMatrix a;
    MatmulMatrix b;
    MatmulMatrix c;

    auto operator<=>(const MatmulRecord&) const = default;
};

struct MatmulPlan {
    MatmulRecord record;
    const void* a = nullptr;
    const void* b = nullptr;
    void* c = nullptr;
};

namespace matmul_detail {

inline std::uint32_t alignment_of(const void* address, std::size_t batch_stride_bytes) {
    const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(address) | batch_stride_bytes | 256u;
    return static_cast<std::uint32_t>(bits & (~bits + 1));
}

/// `matrix` is row-major [rows][columns], one batch entry every `stride` numbers.
template <typename Number>
MatmulMatrix transposed(const Number* matrix, int rows, int columns, std::size_t stride, int batch) {
    const std::size_t used_stride = batch > 1 ? stride : 0;
    return {.rows = columns,
            .columns = rows,
            .leading = columns,
            .batch_stride = static_cast<std::int64_t>(used_stride),
            .type = element_type<Number>(),
            .alignment = alignment_of(matrix, used_stride * sizeof(Number))};
}

inline std::size_t numbers(int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}

template <typename Result, typename P>
MatmulPlan forward(const LinearForward<P>& o, Result* y) {
    const int rows = o.extent.rows_per_replica();
    const int batch = o.extent.replicas;
    return {.record = {.m = o.out,
                       .n = rows,
                       .k = o.in,
                       .transpose_a = true,
                       .transpose_b = false,
                       .batch = batch,
                       .beta = o.accumulate ? 1.0f : 0.0f,
                       .a = transposed(o.weight, o.out, o.in, o.parameter_stride, batch),
                       .b = transposed(o.x, rows, o.in, numbers(rows, o.in), batch),
                       .c = transposed(y, rows, o.out, numbers(rows, o.out), batch)},
            .a = o.weight,
            .b = o.x,
            .c = y};
}

}  // namespace matmul_detail

/// y^T [out x rows] = W [out x in] x^T [in x rows]
template <typename P>
MatmulPlan matmul_plan(const LinearForward<P>& o) {
    return o.y_real != nullptr ? matmul_detail::forward(o, o.y_real) : matmul_detail::forward(o, o.y);
}

/// dx^T [in x rows] = W^T [in x out] dy^T [out x rows]
template <typename P>
MatmulPlan matmul_plan(const LinearInputGradient<P>& o) {
    using matmul_detail::numbers;
    using matmul_detail::transposed;
    const int rows = o.extent.rows_per_replica();
    const int batch = o.extent.replicas;
    return {.record = {.m = o.in,
                       .n = rows,
                       .k = o.out,
                       .transpose_a = false,
                       .transpose_b = false,
                       .batch = batch,
                       .beta = 0.0f,
                       .a = transposed(o.weight, o.out, o.in, o.parameter_stride, batch),
                       .b = transposed(o.dy, rows, o.out, numbers(rows, o.out), batch),
                       .c = transposed(o.dx, rows, o.in, numbers(rows, o.in), batch)},
            .a = o.weight,
            .b = o.dy,
            .c = o.dx};
}

/// dW^T [in x out] = x^T [in x rows] dy [rows x out]
template <typename P>
MatmulPlan matmul_plan(const LinearWeightGradient<P>& o) {
    using matmul_detail::numbers;
    using matmul_detail::transposed;
    const int rows = o.extent.rows_per_replica();
    const int batch = o.extent.replicas;
    return {.record = {.m = o.in,
                       .n = o.out,
                       .k = rows,
                       .transpose_a = false,
                       .transpose_b = true,
                       .batch = batch,
                       .beta = 0.0f,
                       .a = transposed(o.x, rows, o.in, numbers(rows, o.in), batch),
                       .b = transposed(o.dy, rows, o.out, numbers(rows, o.out), batch),
                       .c = transposed(o.weight_gradient, o.out, o.in, o.gradient_stride, batch)},
            .a = o.x,
            .b = o.dy,
            .c = o.weight_gradient};
}

}  // namespace millrace
