// Kernels that hand out rows to warps and elements to threads. What is done with a row is in kernels/rows.
//
// A warp per row and four warps per block: the small model's batch is a thousand rows, which makes a block or two for
// every multiprocessor, and nothing a block shares would get better by more.
#pragma once

#include "kernels/cuda/warp_team.h"
#include "kernels/launch.h"
#include "kernels/ops.h"
#include "kernels/rows/adamw.h"
#include "kernels/rows/embedding.h"
#include "kernels/rows/global_norm.h"

namespace millrace {

inline constexpr int row_block_warps = 4;
inline constexpr int row_block_threads = row_block_warps * 32;

/// A warp for each of `units` things that `body` understands as a row.
template <typename Op, typename Index, void (*body)(const WarpTeam&, const Op&, Index)>
__global__ void __launch_bounds__(row_block_threads) row_kernel(const Op op, Index units) {
    const auto unit = static_cast<Index>(blockIdx.x * row_block_warps + threadIdx.x / 32u);
    if (unit < units) {
        body(WarpTeam{}, op, unit);
    }
}

inline constexpr int element_block_threads = 256;
inline constexpr int elements_per_thread =
    4;  // in flight at once, so that a thread waits for memory once and not often
inline constexpr int element_block_size = element_block_threads * elements_per_thread;

template <typename Op, void (*body)(const Op&, std::size_t)>
__global__ void __launch_bounds__(element_block_threads) element_kernel(const Op op, std::size_t size) {
    const std::size_t first = std::size_t{blockIdx.x} * element_block_size + threadIdx.x;
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (int i = 0; i < elements_per_thread; ++i) {
        const std::size_t element = first + static_cast<std::size_t>(i) * element_block_threads;
        if (element < size) {
            body(op, element);
        }
    }
}

/// blockIdx.y is the replica, so that its norm and the step's numbers are read once per thread.
template <typename P>
__global__ void __launch_bounds__(element_block_threads) adamw_kernel(const AdamW<P> op) {
    using Real = typename P::Real;
    const AdamWStep<Real> step = *op.step;
    const Real clip =
        op.max_norm > 0.0 ? clip_factor(op.norm[blockIdx.y], static_cast<Real>(op.max_norm)) : static_cast<Real>(1);
    const std::size_t i = std::size_t{blockIdx.x} * element_block_threads + threadIdx.x;
    if (i < op.parameters) {
        adamw_element(op, step, clip, blockIdx.y * op.parameters + i);
    }
}

inline constexpr int embedding_block_warps = 8;

/// A block per row of the token tables, [S][V]; each of its warps goes through its share of the batch, because one warp
/// alone would walk through a thousand tokens, and the shares are added up in order. The same sums as
/// embedding_token_gradient_row, differently bracketed.
template <typename P>
__global__ void __launch_bounds__(embedding_block_warps * 32) token_gradient_kernel(const EmbeddingBackward<P> op) {
    using Real = typename P::Real;
    MILLRACE_SHARED(Real[embedding_block_warps][32], shares);
    const int replica = static_cast<int>(blockIdx.x) / op.vocabulary;
    const Token token = static_cast<int>(blockIdx.x) - replica * op.vocabulary;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = WarpTeam::lane();
    const int rows = op.extent.rows_per_replica();
    const int share = (rows + embedding_block_warps - 1) / embedding_block_warps;
    const int first = warp * share;
    const int last = first + share < rows ? first + share : rows;
    const auto width = static_cast<std::size_t>(op.width);
    const Real* const dx = op.dx + static_cast<std::size_t>(replica) * static_cast<std::size_t>(rows) * width;
    const Token* const tokens = op.tokens + static_cast<std::size_t>(replica * op.extent.sequences) * op.token_stride;
    Real* const gradient = op.token_gradient + static_cast<std::size_t>(replica) * op.gradient_stride +
                           static_cast<std::size_t>(token) * width;

    for (int column0 = 0; column0 < op.width; column0 += 32) {
        const int column = column0 + lane;
        Real sum = Real(0);
        for (int row0 = first; row0 < last; row0 += 32) {
            // 32 tokens at a glance; then only the rows where the token stands are visited.
            const int row = row0 + lane;
            bool here = false;
            if (row < last) {
                const int sequence = row / op.extent.tokens;
                const int t = row - sequence * op.extent.tokens;
                here =
                    tokens[static_cast<std::size_t>(sequence) * op.token_stride + static_cast<std::size_t>(t)] == token;
            }
            unsigned found = __ballot_sync(WarpTeam::everyone, here ? 1 : 0);
            for (int offset = 0; found != 0; ++offset, found >>= 1) {
                if ((found & 1u) != 0 && column < op.width) {
                    sum += dx[static_cast<std::size_t>(row0 + offset) * width + static_cast<std::size_t>(column)];
                }
            }
        }
        shares[warp][lane] = sum;
        __syncthreads();
        if (warp == 0 && column < op.width) {
            Real total = shares[0][lane];
            for (int other = 1; other < embedding_block_warps; ++other) {
                total += shares[other][lane];
            }
            gradient[column] = total;
        }
        __syncthreads();
    }
}

}  // namespace millrace
