// Any matrix product of a record, one thread per number of the result: for shapes and alignments that cuBLASLt refuses.
#pragma once

#include <cstddef>
#include <stdexcept>

#include "kernels/cuda/matmul_plan.h"
#include "kernels/launch.h"

namespace millrace {

inline constexpr int plain_matmul_tile = 16;

/// blockIdx.z is the batch entry, x runs along the rows of C, which are adjacent in memory.
template <typename Operand, typename Real, typename Result>
__global__ void __launch_bounds__(plain_matmul_tile* plain_matmul_tile) plain_matmul_kernel(const MatmulPlan plan) {
    const MatmulRecord& r = plan.record;
    const int i = static_cast<int>(blockIdx.x) * plain_matmul_tile + static_cast<int>(threadIdx.x) % plain_matmul_tile;
    const int j = static_cast<int>(blockIdx.y) * plain_matmul_tile + static_cast<int>(threadIdx.x) / plain_matmul_tile;
    if (i >= r.m || j >= r.n) {
        return;
    }
    const auto entry = static_cast<std::int64_t>(blockIdx.z);
    const Operand* const a = static_cast<const Operand*>(plan.a) + entry * r.a.batch_stride;
    const Operand* const b = static_cast<const Operand*>(plan.b) + entry * r.b.batch_stride;
    Result* const c = static_cast<Result*>(plan.c) + entry * r.c.batch_stride + i + std::int64_t{j} * r.c.leading;
    const std::int64_t a_first = r.transpose_a ? std::int64_t{i} * r.a.leading : i;
    const std::int64_t a_step = r.transpose_a ? 1 : r.a.leading;
    const std::int64_t b_first = r.transpose_b ? j : std::int64_t{j} * r.b.leading;
    const std::int64_t b_step = r.transpose_b ? r.b.leading : 1;
    Real sum = Real(0);
    for (int l = 0; l < r.k; ++l) {
        sum += load<Real>(a[a_first + l * a_step]) * load<Real>(b[b_first + l * b_step]);
    }
    if (r.beta != 0.0f) {
        sum += static_cast<Real>(r.beta) * load<Real>(*c);
    }
    *c = store<Result>(sum);
}

/// P says which types the plan's matrices have.
template <typename P>
void multiply_plainly(const MatmulPlan& plan, cudaStream_t stream) {
    using Real = typename P::Real;
    using Operand = typename P::Operand;
    const MatmulRecord& r = plan.record;
    const auto tiles = [](int numbers) {
        return static_cast<unsigned>((numbers + plain_matmul_tile - 1) / plain_matmul_tile);
    };
    const dim3 grid(tiles(r.m), tiles(r.n), static_cast<unsigned>(r.batch));
    constexpr int threads = plain_matmul_tile * plain_matmul_tile;
    if (r.a.type != element_type<Operand>() || r.b.type != element_type<Operand>()) {
        throw std::logic_error("A matrix product of other types than its backend's.");
    }
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
        return;
    }
    if (r.c.type == element_type<Operand>()) {
        MILLRACE_LAUNCH((plain_matmul_kernel<Operand, Real, Operand>), grid, threads, 0, stream, plan);
    } else {
        MILLRACE_LAUNCH((plain_matmul_kernel<Operand, Real, Real>), grid, threads, 0, stream, plan);
    }
}

}  // namespace millrace
