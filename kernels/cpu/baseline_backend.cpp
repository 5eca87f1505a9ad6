// The CPU backend for any x86-64 machine, part of the program itself.
#include "kernels/cpu/baseline_backend.h"

#include "kernels/cpu/fast_backend.h"

namespace millrace {

std::unique_ptr<Backend<Float32>> make_baseline_backend(int threads) {
    return std::make_unique<FastBackend<Float32>>("CPU baseline", threads);
}

std::unique_ptr<Backend<Float64>> make_cpu_backend_float64(int threads) {
    return std::make_unique<FastBackend<Float64>>("CPU baseline, double precision", threads);
}

}  // namespace millrace
