// What all backends on the CPU have in common: memory of the process and a pool of threads.
#pragma once

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "kernels/backend.h"
#include "kernels/cpu/thread_pool.h"

namespace millrace {

template <typename P>
class HostBackend : public Backend<P> {
   public:
    HostBackend(std::string name, int threads) : name_(std::move(name)), pool_(threads) {
        name_ += threads == 1 ? ", 1 thread" : ", " + std::to_string(threads) + " threads";
    }

    std::string name() const override { return name_; }

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

    int lanes() const override { return pool_.threads(); }
    void parallel(int tasks, const std::function<void(int task, int lane)>& task) override { pool_.run(tasks, task); }
    /// 32 sequences of 18: the activations of a narrow model then stay in a core's second-level cache.
    std::size_t tokens_per_task() const override { return 576; }
    void repeatable(std::uint64_t, const std::function<void()>& work) override { work(); }

   private:
    static constexpr std::align_val_t alignment{64};

    std::string name_;
    ThreadPool pool_;
};

}  // namespace millrace
