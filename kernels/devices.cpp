#include "kernels/devices.h"

#include <dlfcn.h>

#include <array>
#include <memory>

namespace millrace {
namespace {

// The driver's functions are declared here and not taken from cuda.h, so that a build without the CUDA Toolkit can
// still say which GPU it is not using. Their binary interface is fixed: the _v2 in a name stands for a changed one.
using Status = int;  // CUresult; 0 is success
constexpr Status no_device = 100;
constexpr int compute_capability_major = 75;
constexpr int compute_capability_minor = 76;

using Init = Status (*)(unsigned flags);
using DriverGetVersion = Status (*)(int* version);
using DeviceGetCount = Status (*)(int* count);
using DeviceGet = Status (*)(int* device, int index);
using DeviceGetName = Status (*)(char* name, int size, int device);
using DeviceTotalMem = Status (*)(std::size_t* bytes, int device);
using DeviceGetAttribute = Status (*)(int* value, int attribute, int device);

struct CloseLibrary {
    void operator()(void* library) const { dlclose(library); }
};

/// Null when the driver has no such function.
template <typename Function>
Function function(void* library, const char* name) {
    return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

CudaDevices find_cuda_devices() {
    CudaDevices found;
    // Never closed once it has started: the driver keeps threads of its own.
    std::unique_ptr<void, CloseLibrary> driver(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL));
    if (driver == nullptr) {
        found.why_none = "There is no NVIDIA driver (libcuda.so.1) on this machine.";
        return found;
    }
    const auto init = function<Init>(driver.get(), "cuInit");
    const auto version = function<DriverGetVersion>(driver.get(), "cuDriverGetVersion");
    const auto count_devices = function<DeviceGetCount>(driver.get(), "cuDeviceGetCount");
    const auto get = function<DeviceGet>(driver.get(), "cuDeviceGet");
    const auto name = function<DeviceGetName>(driver.get(), "cuDeviceGetName");
    const auto memory = function<DeviceTotalMem>(driver.get(), "cuDeviceTotalMem_v2");
    const auto attribute = function<DeviceGetAttribute>(driver.get(), "cuDeviceGetAttribute");
    if (init == nullptr || version == nullptr || count_devices == nullptr || get == nullptr || name == nullptr ||
        memory == nullptr || attribute == nullptr) {
        found.why_none = "The libcuda.so.1 of this machine lacks functions that every CUDA driver has.";
        return found;
    }
    void* const kept = driver.release();
    static_cast<void>(kept);
    version(&found.driver_version);

    const Status started = init(0);
    int count = 0;
    const Status counted = started == 0 ? count_devices(&count) : started;
    if (counted != 0 && counted != no_device) {
        found.why_none = "The NVIDIA driver does not start (CUDA driver error " + std::to_string(counted) + ").";
        return found;
    }
    for (int index = 0; index < count; ++index) {
        int handle = 0;
        std::array<char, 256> text{};
        CudaDevice device{.index = index, .name = {}};
        if (get(&handle, index) == 0 && name(text.data(), static_cast<int>(text.size()), handle) == 0 &&
            memory(&device.memory_bytes, handle) == 0 &&
            attribute(&device.capability_major, compute_capability_major, handle) == 0 &&
            attribute(&device.capability_minor, compute_capability_minor, handle) == 0) {
            device.name = text.data();
            found.devices.push_back(device);
        }
    }
    if (found.devices.empty()) {
        found.why_none = "The NVIDIA driver finds no GPU.";
    }
    return found;
}

}  // namespace millrace
