// How a kernel is written and launched: the one header a .cu file includes to reach the device.
//
// The same file is compiled twice: by nvcc into the CUDA backend, and by the C++ compiler, with MILLRACE_EMULATE_CUDA
// defined, into the tests, where kernels/emulator runs it. That works for a kernel that keeps four rules:
//
//   * it is launched by MILLRACE_LAUNCH instead of <<<...>>>;
//   * its shared memory is declared by MILLRACE_SHARED(float[16][17], tile) and MILLRACE_DYNAMIC_SHARED(float, row);
//   * inline PTX stands in a device function of its own, which has a twin for the host;
//   * lanes of a warp never count on running in step: what one lane writes to memory, another may read only after a
//     __syncwarp or a __syncthreads.
//
// An emulated kernel has these words of CUDA: threadIdx, blockIdx, blockDim, gridDim, warpSize, dim3, __syncthreads,
// __syncwarp, __shfl_sync, __shfl_xor_sync, __shfl_down_sync and __ballot_sync. There are no atomics, since a sum of
// floats in the order of arrival differs from run to run, and the learner promises the same bytes.
#pragma once

#if defined(MILLRACE_EMULATE_CUDA)

#include "kernels/emulator/cuda_words.h"

#elif defined(__CUDACC__)

#include <cuda_runtime.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace millrace {

/// Launches a kernel and throws when the launch is refused; what goes wrong later, on the device, is found by whoever
/// waits for the stream.
template <typename... Parameters>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, std::type_identity_t<Parameters>... arguments) {
    constexpr std::size_t granted_to_all = 48 * 1024;  // of shared memory; whoever wants more has to say so before
    cudaError_t status = cudaSuccess;
    if (shared_bytes > granted_to_all) {
        status = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    }
    if (status == cudaSuccess) {
        // clang-format would take the brackets apart.
        // clang-format off
        kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
        // clang-format on
        status = cudaGetLastError();
    }
    if (status != cudaSuccess) {
        throw std::runtime_error("Kernel " + std::string(name) + " was not launched: " + cudaGetErrorString(status) +
                                 ".");
    }
}

}  // namespace millrace

#define MILLRACE_SHARED(Type, name) __shared__ std::type_identity_t<Type> name

// Bytes under one name for all kernels: an extern array of another type under the same name would not compile.
#define MILLRACE_DYNAMIC_SHARED(Type, name)                                  \
    extern __shared__ __align__(16) unsigned char millrace_dynamic_shared[]; \
    Type* const name = reinterpret_cast<Type*>(millrace_dynamic_shared)

#else
#error "A file with kernels is compiled by nvcc, or with MILLRACE_EMULATE_CUDA defined."
#endif

/// MILLRACE_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...). The instance of a kernel template with a
/// comma in its list of arguments needs parentheses: MILLRACE_LAUNCH((norm<float, 64>), ...).
#define MILLRACE_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    ::millrace::launch(#kernel, kernel, grid, block, shared_bytes, stream __VA_OPT__(, ) __VA_ARGS__)
