// The CUDA backend without a GPU: the same kernels, run by the emulator, and matrix products by the interpreter.
#pragma once

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "kernels/cuda/device_operations.h"
#include "kernels/cuda/matmul_plain.cuh"
#include "tests/kernels/matmul_interpreter.h"

namespace millrace::test {

/// What an H100 or H200 gives to a block that asks for it.
inline constexpr std::size_t hopper_shared_bytes = 227 * 1024;

/// In the place of cuBLASLt: what it is documented to do with a record, or the kernel that does what it refuses.
enum class EmulatedMatmul { interpreter, plain_kernel };

template <typename P>
class EmulatedBackend final : public DeviceOperations<P> {
   public:
    explicit EmulatedBackend(std::size_t shared_bytes = hopper_shared_bytes,
                             EmulatedMatmul matmul = EmulatedMatmul::interpreter)
        : DeviceOperations<P>(nullptr, shared_bytes), matmul_(matmul) {}

    std::string name() const override { return "emulated CUDA"; }

    void* allocate(std::size_t bytes) override { return ::operator new(std::max<std::size_t>(bytes, 1), alignment); }
    void release(void* memory) noexcept override { ::operator delete(memory, alignment); }
    void upload(void* destination, const void* host, std::size_t bytes) override { copy(destination, host, bytes); }
    void download(void* host, const void* source, std::size_t bytes) override { copy(host, source, bytes); }
    void copy(void* destination, const void* source, std::size_t bytes) override {
        if (bytes > 0) {
            std::memcpy(destination, source, bytes);
        }
    }
    void clear(void* destination, std::size_t bytes) override {
        if (bytes > 0) {
            std::memset(destination, 0, bytes);
        }
    }

    int lanes() const override { return 1; }
    void parallel(int tasks, const std::function<void(int task, int lane)>& task) override {
        for (int i = 0; i < tasks; ++i) {
            task(i, 0);
        }
    }
    std::size_t tokens_per_task() const override { return std::size_t{1} << 30; }
    void repeatable(std::uint64_t, const std::function<void()>& work) override { work(); }

   protected:
    void multiply(const MatmulPlan& plan) override {
        if (matmul_ == EmulatedMatmul::interpreter) {
            execute(plan);
        } else {
            multiply_plainly<P>(plan, nullptr);
        }
    }

   private:
    static constexpr std::align_val_t alignment{64};

    EmulatedMatmul matmul_;
};

}  // namespace millrace::test
