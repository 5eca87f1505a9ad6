#include "tests/kernels/sample_kernels.h"

#include <cstddef>

#include "kernels/launch.h"

namespace millrace {

namespace {

// ---- multiply_tiled -------------------------------------------------------------------------------------------------

constexpr int tile = 8;

template <Fault fault>
__global__ void __launch_bounds__(tile* tile)
    multiply_tiled_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int rows,
                          int columns, int inner) {
    MILLRACE_SHARED(float[tile][tile], a_tile);
    MILLRACE_SHARED(float[tile][tile], b_tile);
    const int x = static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(threadIdx.y);
    const int row = static_cast<int>(blockIdx.y) * tile + y;
    const int column = static_cast<int>(blockIdx.x) * tile + x;
    float sum = 0;
    for (int start = 0; start < inner; start += tile) {
        a_tile[y][x] = row < rows && start + x < inner ? a[row * inner + start + x] : 0.0f;
        b_tile[y][x] = start + y < inner && column < columns ? b[(start + y) * columns + column] : 0.0f;
        if constexpr (fault != Fault::no_barrier_after_load) {
            __syncthreads();
        }
        for (int i = 0; i < tile; ++i) {
            sum += a_tile[y][i] * b_tile[i][x];
        }
        if constexpr (fault != Fault::no_barrier_before_load) {
            __syncthreads();
        }
    }
    if (row < rows && column < columns) {
        c[row * columns + column] = sum;
    }
}

// ---- sum_rows -------------------------------------------------------------------------------------------------------

__device__ __forceinline__ float warp_sum(float value) {
    for (int distance = 16; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    }
    return value;
}

template <Fault fault>
__global__ void sum_rows_kernel(const float* x, float* sums, int rows, int columns) {
    const int row = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
    const int lane = static_cast<int>(threadIdx.x);
    if (row >= rows) {
        return;
    }
    if (fault == Fault::lane_has_exited && lane >= columns) {
        return;
    }
    const float sum = warp_sum(lane < columns ? x[row * columns + lane] : 0.0f);
    if (lane == 0) {
        sums[row] = sum;
    }
}

// ---- reverse_rows ---------------------------------------------------------------------------------------------------

template <Fault fault>
__global__ void reverse_rows_kernel(const float* x, float* y, int rows, int columns) {
    MILLRACE_DYNAMIC_SHARED(float, buffer);
    float* const own = buffer + static_cast<int>(threadIdx.y) * columns;
    const int row = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
    const bool exists = row < rows || fault == Fault::row_too_many;
    for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x)) {
        own[i] = exists ? x[row * columns + i] : 0.0f;
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < columns && exists; i += static_cast<int>(blockDim.x)) {
        y[row * columns + i] = own[columns - 1 - i];
    }
}

// ---- rotate ---------------------------------------------------------------------------------------------------------

template <Fault fault>
__global__ void rotate_kernel(const float* x, float* y, int warps) {
    MILLRACE_SHARED(float[32], values);
    const int lane = static_cast<int>(threadIdx.x);
    const int first = static_cast<int>(blockIdx.x) * warpSize;
    values[lane] = x[first + lane];
    if constexpr (fault == Fault::no_syncwarp) {
        __shfl_sync(0xffffffffu, lane, 0);
    } else {
        __syncwarp();
    }
    y[first + lane] = values[(lane + 1) % warpSize];
    if (fault == Fault::blocks_overlap && lane == 0 && first + warpSize < warps * warpSize) {
        y[first + warpSize] = 0.0f;
    }
}

/// The instance for a fault that this kernel has, and else the right one.
template <Fault... of_the_kernel>
void with_fault(Fault fault, auto&& launch_instance) {
    const bool found =
        ((fault == of_the_kernel && (launch_instance.template operator()<of_the_kernel>(), true)) || ...);
    if (!found) {
        launch_instance.template operator()<Fault::none>();
    }
}

}  // namespace

void multiply_tiled(Fault fault, const float* a, const float* b, float* c, int rows, int columns, int inner) {
    const dim3 grid(static_cast<unsigned>((columns + tile - 1) / tile),
                    static_cast<unsigned>((rows + tile - 1) / tile));
    with_fault<Fault::no_barrier_after_load, Fault::no_barrier_before_load>(fault, [&]<Fault planted>() {
        MILLRACE_LAUNCH(multiply_tiled_kernel<planted>, grid, dim3(tile, tile), 0, nullptr, a, b, c, rows, columns,
                        inner);
    });
}

void sum_rows(Fault fault, const float* x, float* sums, int rows, int columns) {
    with_fault<Fault::lane_has_exited>(fault, [&]<Fault planted>() {
        MILLRACE_LAUNCH(sum_rows_kernel<planted>, static_cast<unsigned>((rows + 1) / 2), dim3(32, 2), 0, nullptr, x,
                        sums, rows, columns);
    });
}

void reverse_rows(Fault fault, const float* x, float* y, int rows, int columns) {
    const int floats = fault == Fault::shared_memory_short ? 2 * columns - 1 : 2 * columns;
    with_fault<Fault::row_too_many>(fault, [&]<Fault planted>() {
        MILLRACE_LAUNCH(reverse_rows_kernel<planted>, static_cast<unsigned>((rows + 1) / 2), dim3(16, 2),
                        static_cast<std::size_t>(floats) * sizeof(float), nullptr, x, y, rows, columns);
    });
}

void rotate(Fault fault, const float* x, float* y, int warps) {
    with_fault<Fault::no_syncwarp, Fault::blocks_overlap>(fault, [&]<Fault planted>() {
        MILLRACE_LAUNCH(rotate_kernel<planted>, static_cast<unsigned>(warps), 32, 0, nullptr, x, y, warps);
    });
}

}  // namespace millrace
