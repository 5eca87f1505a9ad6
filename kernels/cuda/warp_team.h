// The team of a CUDA warp: 32 lanes that combine what they found by shuffles, without shared memory or barriers.
//
// Sums go by a butterfly: in each round every lane adds its partner's number to its own. Addition commutes exactly, so
// all lanes end with the same bits, and the order of additions never depends on timing.
#pragma once

#include "kernels/launch.h"
#include "kernels/precision.h"

// The bodies of rows are functions of host and device alike, so nvcc reads a team's functions for the host as well,
// where there are no lanes.
#if defined(MILLRACE_EMULATE_CUDA) || defined(__CUDA_ARCH__)
#define MILLRACE_HAS_LANES 1
#else
#define MILLRACE_HAS_LANES 0
#endif

namespace millrace {

struct WarpTeam {
    static constexpr int width = 32;
    static constexpr unsigned everyone = 0xffffffffu;

    /// Blocks are rows of threads in x.
    MILLRACE_HOST_DEVICE static int lane() {
#if MILLRACE_HAS_LANES
        return static_cast<int>(threadIdx.x % 32u);
#else
        return 0;
#endif
    }

    template <typename Real>
    MILLRACE_HOST_DEVICE static Real sum(Real value) {
#if MILLRACE_HAS_LANES
        for (int distance = 16; distance > 0; distance /= 2) {
            value += __shfl_xor_sync(everyone, value, distance);
        }
#endif
        return value;
    }

    /// A NaN of some lanes may get lost, as with std::max.
    template <typename Real>
    MILLRACE_HOST_DEVICE static Real max(Real value) {
#if MILLRACE_HAS_LANES
        for (int distance = 16; distance > 0; distance /= 2) {
            const Real other = __shfl_xor_sync(everyone, value, distance);
            value = other > value ? other : value;
        }
#endif
        return value;
    }

    MILLRACE_HOST_DEVICE static void sync() {
#if MILLRACE_HAS_LANES
        __syncwarp(everyone);
#endif
    }
};

}  // namespace millrace
