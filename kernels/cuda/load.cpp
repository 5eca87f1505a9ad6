#include "kernels/cuda/load.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/factory.h"
#include "kernels/devices.h"

namespace millrace {
namespace {

constexpr int least_capability = 8;  // bf16 in the tensor cores came with Ampere

#if defined(MILLRACE_CUDA_RUNTIME_MAJOR)
constexpr int runtime_major = MILLRACE_CUDA_RUNTIME_MAJOR;
#endif

const CudaDevice& usable_device(const CudaDevices& found, int device) {
    if (found.devices.empty()) {
        throw std::runtime_error("No CUDA backend: " + found.why_none);
    }
    for (const CudaDevice& one : found.devices) {
        if (one.index == device) {
            if (one.capability_major < least_capability) {
                throw std::runtime_error("No CUDA backend on GPU " + std::to_string(device) + ": " + one.name +
                                         " has compute capability " + std::to_string(one.capability_major) + "." +
                                         std::to_string(one.capability_minor) +
                                         ", and 8.0 is the first with bf16 tensor cores.");
            }
            return one;
        }
    }
    throw std::runtime_error("No CUDA backend on GPU " + std::to_string(device) + ": this machine has " +
                             std::to_string(found.devices.size()) + ", counted from 0.");
}

#if defined(MILLRACE_CUDA_RUNTIME_MAJOR)

std::vector<std::filesystem::path> places_of_the_object() {
    if (const char* named = std::getenv("MILLRACE_CUDA_LIBRARY"); named != nullptr && *named != '\0') {
        return {named};
    }
    std::error_code failed;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
    return {program / "libmillrace_cuda.so", program.parent_path() / "lib" / "millrace" / "libmillrace_cuda.so"};
}

/// Stays open: the backends made by it have their code there.
void* open_object() {
    std::string tried;
    for (const std::filesystem::path& place : places_of_the_object()) {
        if (void* object = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL); object != nullptr) {
            return object;
        }
        tried += std::string(tried.empty() ? "" : "; ") + dlerror();
    }
    throw std::runtime_error("No CUDA backend: libmillrace_cuda.so does not open (" + tried + ").");
}

template <typename Function>
Function exported(void* object, const char* name) {
    const auto function = reinterpret_cast<Function>(dlsym(object, name));
    if (function == nullptr) {
        throw std::runtime_error(std::string("No CUDA backend: the libmillrace_cuda.so found lacks ") + name + ".");
    }
    return function;
}

#endif

}  // namespace

std::unique_ptr<Backend<Mixed>> make_cuda_backend(int device) {
    const CudaDevices found = find_cuda_devices();
    usable_device(found, device);
#if defined(MILLRACE_CUDA_RUNTIME_MAJOR)
    if (found.driver_version / 1000 < runtime_major) {
        throw std::runtime_error("No CUDA backend: the NVIDIA driver speaks CUDA " +
                                 std::to_string(found.driver_version / 1000) + "." +
                                 std::to_string(found.driver_version % 1000 / 10) +
                                 ", and this millrace was built with CUDA " + std::to_string(runtime_major) + ".");
    }
    void* const object = open_object();
    if (std::string(exported<CudaInterface>(object, cuda_interface_symbol)()) != MILLRACE_CUDA_INTERFACE) {
        throw std::runtime_error("No CUDA backend: the libmillrace_cuda.so found is of another build of millrace.");
    }
    std::array<char, 1024> error{};
    Backend<Mixed>* backend = exported<CudaFactory>(object, cuda_factory_symbol)(device, error.data(), error.size());
    if (backend == nullptr) {
        throw std::runtime_error(std::string("No CUDA backend: ") + error.data());
    }
    return std::unique_ptr<Backend<Mixed>>(backend);
#else
    throw std::runtime_error("No CUDA backend: this millrace was built without the CUDA Toolkit.");
#endif
}

}  // namespace millrace
