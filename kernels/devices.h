// Which NVIDIA GPUs this machine has, asked of the driver alone: no CUDA runtime and no cuBLAS is loaded for it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace millrace {

struct CudaDevice {
    int index = 0;  ///< as CUDA counts, after CUDA_VISIBLE_DEVICES
    std::string name;
    std::size_t memory_bytes = 0;
    int capability_major = 0;  ///< compute capability: 8.0 is A100, 9.0 is H100 and H200
    int capability_minor = 0;
};

struct CudaDevices {
    std::vector<CudaDevice> devices;
    int driver_version = 0;  ///< the newest CUDA the driver speaks: 1000 * major + 10 * minor; 0 without a driver
    std::string why_none;    ///< a sentence, where `devices` is empty
};

/// Opens libcuda.so.1 where there is one; takes under a millisecond where there is none.
CudaDevices find_cuda_devices();

}  // namespace millrace
