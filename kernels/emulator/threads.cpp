// Runs the threads of a block as threads of the system, for ThreadSanitizer.
//
// What orders memory between two CUDA threads is told to ThreadSanitizer in so many words: the launch comes before
// everything in it, __syncthreads and __syncwarp order those who meet there, and nothing else does. Shuffles and
// ballots do not, nor does it matter which block ran first. The locks that this file needs for its own purposes would
// order much more, and hide the races that a device would run into, so they are kept from its sight.
#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/emulator/block.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/lane_order.h"
#include "kernels/emulator/shared_memory.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
extern "C" {  // of the runtime, in no header
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}
#endif

namespace millrace::emulator {

namespace {

/// Where threads tell ThreadSanitizer of an order. It keeps one clock for each eight bytes.
struct Place {
    std::uint64_t unused = 0;
};

/// Everything this thread has done comes before what others do after they acquire the same place.
void release([[maybe_unused]] Place& place) {
#if defined(__SANITIZE_THREAD__)
    __tsan_release(&place);
#endif
}

void acquire([[maybe_unused]] Place& place) {
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(&place);
#endif
}

/// In its scope ThreadSanitizer sees neither memory accesses nor locks of this thread.
class Unobserved {
   public:
    Unobserved() {
#if defined(__SANITIZE_THREAD__)
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
#endif
    }
    ~Unobserved() {
#if defined(__SANITIZE_THREAD__)
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
    }
    Unobserved(const Unobserved&) = delete;
    Unobserved& operator=(const Unobserved&) = delete;
};

/// Thrown in a waiting thread when another one has failed, to leave the kernel.
struct Abandoned {};

/// One block while it runs, and after, until the launch has ended: its shared memory must not become that of the next
/// block, since no order between the two is known to ThreadSanitizer.
struct RunningBlock {
    RunningBlock(const Launch& launch_, const std::function<void()>& body_, uint3 index_)
        : launch(launch_),
          body(body_),
          index(index_),
          rules(launch, index),
          memory(launch),
          warps(rules.size() / 32 + 1),
          synced(rules.size()) {}

    void wake_warp_of(unsigned thread) { warps[thread / 32].notify_all(); }
    void wake_all() {
        for (std::condition_variable& warp : warps) {
            warp.notify_all();
        }
    }

    const Launch& launch;
    const std::function<void()>& body;  // calls the kernel
    const uint3 index;

    std::mutex mutex{};  // of all below but the places
    Block rules;
    SharedMemory memory;
    std::exception_ptr error{};
    std::vector<std::condition_variable> warps;

    // Places to release and acquire, two of each, used in turn: a fast thread comes to the next meeting before a slow
    // one has acquired from this one.
    using Places = std::array<Place, 2>;
    Places barrier{};
    std::vector<Places> synced;  // [thread]
};

/// The CUDA thread that a thread of the system runs.
struct Self {
    RunningBlock* block = nullptr;
    unsigned thread = 0;
    unsigned barriers = 0;  // calls of __syncthreads so far
    unsigned syncs = 0;     // calls of __syncwarp so far
};
thread_local Self self;

void run_thread(RunningBlock& block, unsigned thread) {
    self = {&block, thread};
    threadIdx = position(thread, block.launch.block);
    blockIdx = block.index;
    blockDim = block.launch.block;
    gridDim = block.launch.grid;
    std::exception_ptr error;
    try {
        block.body();
        const Unobserved unobserved;
        const std::lock_guard lock(block.mutex);
        block.rules.exit(thread);
        block.wake_all();
    } catch (const Abandoned&) {
    } catch (...) {
        error = std::current_exception();
    }
    self = {};
    if (error) {
        const Unobserved unobserved;
        const std::lock_guard lock(block.mutex);
        if (!block.error) {
            block.error = error;
        }
        block.wake_all();
    }
}

/// Threads of the system that run CUDA threads, kept from block to block.
class Pool {
   public:
    ~Pool() {
        {
            const Unobserved unobserved;
            const std::lock_guard lock(mutex_);
            stopping_ = true;
            for (Server& server : servers_) {
                server.called.notify_one();
            }
        }
        for (Server& server : servers_) {
            server.system_thread.join();
        }
    }

    /// Runs the block by the servers from number `first` on and waits for it. What the caller did before is ordered
    /// before what the block does, but the block is ordered before what the caller does next only once that calls
    /// acquire_all: else it would be ordered before the next block as well.
    void run(RunningBlock& block, std::size_t first) {
        const unsigned threads = block.rules.size();
        while (servers_.size() < first + threads) {
            Server& server = servers_.emplace_back();
            server.system_thread = std::thread([this, &server] { serve(server); });
        }
        release(start_);
        const Unobserved unobserved;
        std::unique_lock lock(mutex_);
        left_ = threads;
        for (unsigned thread = 0; thread < threads; ++thread) {
            Server& server = servers_[first + thread];
            server.block = &block;
            server.thread = thread;
            server.called.notify_one();
        }
        done_.wait(lock, [this] { return left_ == 0; });
    }
    void acquire_all() { acquire(end_); }

   private:
    struct Server {
        std::thread system_thread{};
        std::condition_variable called{};
        RunningBlock* block = nullptr;  // to run next
        unsigned thread = 0;            // of the block
    };

    void serve(Server& server) {
        while (RunningBlock* const block = next_block(server)) {
            acquire(start_);
            run_thread(*block, server.thread);
            release(end_);
            const Unobserved unobserved;
            const std::lock_guard lock(mutex_);
            if (--left_ == 0) {
                done_.notify_one();
            }
        }
    }

    RunningBlock* next_block(Server& server) {
        const Unobserved unobserved;
        std::unique_lock lock(mutex_);
        server.called.wait(lock, [&] { return stopping_ || server.block != nullptr; });
        return std::exchange(server.block, nullptr);
    }

    std::deque<Server> servers_{};  // which stay where they are when others come
    std::mutex mutex_{};
    std::condition_variable done_{};
    unsigned left_ = 0;
    bool stopping_ = false;
    Place start_{};
    Place end_{};
};

std::uint64_t meet_unobserved(RunningBlock& block, unsigned thread, const Request& request) {
    const Unobserved unobserved;
    std::unique_lock lock(block.mutex);
    if (!block.error) {
        if (!block.rules.arrive(thread, request)) {
            block.warps[thread / 32].wait(lock, [&] { return block.error || block.rules.can_go_on(thread); });
        } else if (request.operation == Operation::barrier) {
            block.wake_all();
        } else {
            block.wake_warp_of(thread);
        }
    }
    if (block.error) {
        throw Abandoned{};
    }
    return block.rules.result(thread);
}

void sync_block(const Request& request) {
    Place& place = self.block->barrier[self.barriers++ % 2];
    release(place);
    meet_unobserved(*self.block, self.thread, request);
    acquire(place);
}

void sync_warp(Request request) {
    RunningBlock& block = *self.block;
    request.bits = self.syncs++ % 2;  // the others learn which of the two places this thread has released
    release(block.synced[self.thread][request.bits]);
    const std::uint64_t places = meet_unobserved(block, self.thread, request);
    const unsigned first_thread = self.thread / 32 * 32;
    for (unsigned lane = 0; lane < 32 && first_thread + lane < block.rules.size(); ++lane) {
        if ((request.mask >> lane & 1u) != 0) {
            acquire(block.synced[first_thread + lane][places >> lane & 1u]);
        }
    }
}

}  // namespace

void run(const Launch& launch, const std::function<void()>& body) {
    if (self.block != nullptr) {
        throw EmulationError("Kernel " + std::string(launch.kernel) +
                             " is launched by a kernel; only the host launches.");
    }
    check_limits(launch);
    static std::mutex one_launch_at_a_time;
    const std::lock_guard lock(one_launch_at_a_time);
    static Pool pool;
    const unsigned blocks = launch.grid.x * launch.grid.y * launch.grid.z;
    std::vector<std::unique_ptr<RunningBlock>> all;
    for (const unsigned index : ordered(blocks, ~std::uint64_t{0})) {
        // What one thread of the system does is ordered, so blocks have to be run by different ones; by as many as make
        // it likely that of two blocks that get in each other's way.
        constexpr std::size_t parties = 4;
        const std::size_t party = all.size() % parties;
        all.push_back(std::make_unique<RunningBlock>(launch, body, position(index, launch.grid)));
        RunningBlock& block = *all.back();
        pool.run(block, party * block.rules.size());
        const Unobserved unobserved;
        if (!block.error) {
            try {
                block.memory.check_guards(block.index);
            } catch (...) {
                block.error = std::current_exception();
            }
        }
        if (block.error) {
            break;
        }
    }
    pool.acquire_all();
    if (all.back()->error) {
        std::rethrow_exception(all.back()->error);
    }
}

std::uint64_t meet(const Request& request) {
    switch (request.operation) {
        case Operation::barrier:
            sync_block(request);
            return 0;
        case Operation::sync_warp:
            sync_warp(request);
            return 0;
        default:
            return meet_unobserved(*self.block, self.thread, request);
    }
}

void* dynamic_shared() {
    return self.block->memory.dynamic();
}

void* static_shared(const void* key, const char* name, std::size_t bytes, std::size_t alignment) {
    const Unobserved unobserved;
    const std::lock_guard lock(self.block->mutex);
    return self.block->memory.variable(key, name, bytes, alignment);
}

}  // namespace millrace::emulator
