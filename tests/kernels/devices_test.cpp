// Which GPUs are found, and what one is told where none can be used.
#include "kernels/devices.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "kernels/cuda/load.h"

namespace millrace {
namespace {

/// The sentence with which making a backend fails; empty if it succeeds.
std::string refusal(int device = 0) {
    try {
        make_cuda_backend(device);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

bool driver_is_fake() {
    return std::getenv("MILLRACE_FAKE_DRIVER") != nullptr;
}

void claim(const char* gpus) {
    setenv("MILLRACE_FAKE_GPUS", gpus, 1);
}

TEST_CASE("the machine has GPUs with names and memory, or a reason why not") {
    if (driver_is_fake()) {
        claim("13000");
    }
    const CudaDevices found = find_cuda_devices();
    if (found.devices.empty()) {
        CHECK(found.why_none.ends_with("."));
        CHECK(contains(refusal(), found.why_none));
    }
    for (const CudaDevice& device : found.devices) {
        CHECK_FALSE(device.name.empty());
        CHECK(device.memory_bytes > 0);
        CHECK(device.capability_major > 0);
    }
}

TEST_CASE("a driver's list is taken over" * doctest::skip(!driver_is_fake())) {
    claim("13010;NVIDIA H200,9,0;NVIDIA A100-SXM4-40GB,8,0");
    const CudaDevices found = find_cuda_devices();
    CHECK(found.driver_version == 13010);
    REQUIRE(found.devices.size() == 2);
    CHECK(found.devices[0].name == "NVIDIA H200");
    CHECK(found.devices[0].capability_major == 9);
    CHECK(found.devices[1].index == 1);
    CHECK(found.devices[1].name == "NVIDIA A100-SXM4-40GB");
    CHECK(found.devices[1].memory_bytes == std::size_t{2} << 34);
    CHECK(found.devices[1].capability_minor == 0);
}

TEST_CASE("what cannot be used is refused with the reason" * doctest::skip(!driver_is_fake())) {
    SUBCASE("no GPU") {
        claim("13000");
        CHECK(contains(refusal(), "finds no GPU"));
    }
    SUBCASE("a driver that does not start") {
        claim("broken;NVIDIA H200,9,0");
        CHECK(contains(refusal(), "does not start (CUDA driver error 3)"));
    }
    SUBCASE("a GPU that does not exist") {
        claim("13000;NVIDIA H200,9,0");
        CHECK(contains(refusal(1), "No CUDA backend on GPU 1: this machine has 1"));
    }
    SUBCASE("a GPU without bf16") {
        claim("13000;Tesla T4,7,5");
        CHECK(contains(refusal(), "Tesla T4 has compute capability 7.5"));
    }
#if defined(MILLRACE_CUDA_BUILT)
    SUBCASE("a driver older than the build") {
        claim("11080;NVIDIA A100,8,0");
        CHECK(contains(refusal(), "speaks CUDA 11.8"));
    }
    SUBCASE("no shared object") {
        claim("13000;NVIDIA H200,9,0");
        setenv("MILLRACE_CUDA_LIBRARY", "/nowhere/libmillrace_cuda.so", 1);
        CHECK(contains(refusal(), "does not open (/nowhere/libmillrace_cuda.so: cannot open shared object file"));
        unsetenv("MILLRACE_CUDA_LIBRARY");
    }
    SUBCASE("a GPU that is a lie") {  // as far as one gets without a real one: into the shared object and back
        claim("13000;NVIDIA H200,9,0");
        CHECK(contains(refusal(), "CUDA could not"));
    }
#else
    SUBCASE("a build without CUDA") {
        claim("13000;NVIDIA H200,9,0");
        CHECK(contains(refusal(), "built without the CUDA Toolkit"));
    }
#endif
}

}  // namespace
}  // namespace millrace
