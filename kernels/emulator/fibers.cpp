// Runs the threads of a block as fibers: each goes on until it has to wait, then the next one has its turn.
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/emulator/block.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/lane_order.h"
#include "kernels/emulator/shared_memory.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace millrace::emulator {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t stack_bytes = 256 * 1024;  // red zones around everything
#else
constexpr std::size_t stack_bytes = 64 * 1024;
#endif

// AddressSanitizer has to be told of each change of stacks: announce_switch before, on the old one, and confirm_switch
// after, on the new one. Without it these do nothing.
void announce_switch([[maybe_unused]] void** old_fake_stack, [[maybe_unused]] const void* bottom,
                     [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(old_fake_stack, bottom, bytes);
#endif
}

void confirm_switch([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** old_bottom,
                    [[maybe_unused]] std::size_t* old_bytes) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, old_bottom, old_bytes);
#endif
}

/// A stack whose last page faults, so that a kernel with too large a frame stops there.
struct StackAllocator {
    boost::context::protected_fixedsize_stack pages{stack_bytes};

    boost::context::stack_context allocate() { return pages.allocate(); }
    void deallocate(boost::context::stack_context& stack) {
#if defined(__SANITIZE_ADDRESS__)
        // Whoever gets these addresses next must not find the red zones of the last frames.
        ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(stack.sp) - stack.size, stack.size);
#endif
        pages.deallocate(stack);
    }
};

/// A fiber that does one task after the other; it is kept from launch to launch, since making one costs more than
/// most tasks.
class Fiber {
   public:
    Fiber() {
        StackAllocator allocator;
        const boost::context::stack_context stack = allocator.allocate();
        stack_bottom_ = static_cast<char*>(stack.sp) - stack_bytes;  // the page below, counted in stack.size, faults
        fiber_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                                       allocator,
                                       [this](boost::context::fiber&& caller) { return loop(std::move(caller)); });
    }
    ~Fiber() {
        task_ = nullptr;
        resume();
    }
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// From outside: gives the fiber a task, which must not throw, for its next turns.
    void set_task(const std::function<void()>& task) {
        task_ = &task;
        is_idle_ = false;
    }
    bool is_idle() const { return is_idle_; }

    /// From outside: the fiber's turn, until it calls suspend() or its task ends.
    void resume() {
        void* fake_stack = nullptr;
        announce_switch(&fake_stack, stack_bottom_, stack_bytes);
        fiber_ = std::move(fiber_).resume();
        confirm_switch(fake_stack, nullptr, nullptr);
    }

    /// From the fiber: ends its turn; returns when it has the next one.
    void suspend() {
        void* fake_stack = nullptr;
        announce_switch(&fake_stack, caller_bottom_, caller_bytes_);
        caller_ = std::move(caller_).resume();
        confirm_switch(fake_stack, &caller_bottom_, &caller_bytes_);
    }

   private:
    boost::context::fiber loop(boost::context::fiber&& caller) {
        confirm_switch(nullptr, &caller_bottom_, &caller_bytes_);
        caller_ = std::move(caller);
        while (task_ != nullptr) {
            (*task_)();
            is_idle_ = true;
            suspend();
        }
        announce_switch(nullptr, caller_bottom_, caller_bytes_);  // no place to save to: this stack has had its day
        return std::move(caller_);
    }

    boost::context::fiber fiber_;
    boost::context::fiber caller_;
    const void* stack_bottom_ = nullptr;
    const void* caller_bottom_ = nullptr;
    std::size_t caller_bytes_ = 0;
    const std::function<void()>* task_ = nullptr;
    bool is_idle_ = true;
};

std::vector<std::unique_ptr<Fiber>>& fibers() {
    thread_local std::vector<std::unique_ptr<Fiber>> pool;
    return pool;
}

/// Thrown in a waiting thread when another one has failed, to leave the kernel.
struct Abandoned {};

/// The block that runs, and the thread of it whose turn it is.
struct Turn {
    Block* block = nullptr;
    SharedMemory* memory = nullptr;
    Fiber* fiber = nullptr;
    unsigned thread = 0;
    std::exception_ptr error{};
};
thread_local Turn* turn = nullptr;

void run_thread(const std::function<void()>& body) {
    if (turn->error) {
        return;  // another thread failed before this one began
    }
    const unsigned thread = turn->thread;
    try {
        body();
        turn->block->exit(thread);
    } catch (const Abandoned&) {
    } catch (...) {
        if (!turn->error) {
            turn->error = std::current_exception();
        }
    }
}

void run_block(Turn& now, const std::function<void()>& task, const std::vector<unsigned>& order,
               const std::vector<uint3>& positions) {
    const auto take_turn = [&](unsigned thread) {
        now.thread = thread;
        now.fiber = fibers()[thread].get();
        threadIdx = positions[thread];
        now.fiber->resume();
    };
    for (const unsigned thread : order) {
        fibers()[thread]->set_task(task);
    }
    while (!now.block->is_done() && !now.error) {
        for (const unsigned thread : order) {
            if (now.block->can_go_on(thread)) {
                take_turn(thread);
                if (now.error) {
                    break;
                }
            }
        }
    }
    if (now.error) {
        for (const unsigned thread : order) {
            if (!fibers()[thread]->is_idle()) {
                take_turn(thread);
            }
        }
        std::rethrow_exception(now.error);
    }
}

}  // namespace

void run(const Launch& launch, const std::function<void()>& body) {
    if (turn != nullptr) {
        throw EmulationError("Kernel " + std::string(launch.kernel) +
                             " is launched by a kernel; only the host launches.");
    }
    check_limits(launch);
    const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
    while (fibers().size() < threads) {
        fibers().push_back(std::make_unique<Fiber>());
    }
    std::vector<uint3> positions;
    for (unsigned thread = 0; thread < threads; ++thread) {
        positions.push_back(position(thread, launch.block));
    }

    SharedMemory memory(launch);
    Turn now;
    now.memory = &memory;
    const struct Running {  // however the launch ends
        explicit Running(Turn& now) { turn = &now; }
        ~Running() { turn = nullptr; }
    } running(now);
    const std::function<void()> task = [&body] { run_thread(body); };
    gridDim = launch.grid;
    blockDim = launch.block;
    for (const unsigned index : ordered(launch.grid.x * launch.grid.y * launch.grid.z, ~std::uint64_t{0})) {
        blockIdx = position(index, launch.grid);
        Block block(launch, blockIdx);
        now.block = &block;
        memory.start_block();
        run_block(now, task, ordered(threads, index), positions);
        memory.check_guards(blockIdx);
    }
}

std::uint64_t meet(const Request& request) {
    const unsigned thread = turn->thread;
    if (!turn->block->arrive(thread, request)) {
        turn->fiber->suspend();
        if (turn->error) {
            throw Abandoned{};
        }
    }
    return turn->block->result(thread);
}

void* dynamic_shared() {
    return turn->memory->dynamic();
}

void* static_shared(const void* key, const char* name, std::size_t bytes, std::size_t alignment) {
    return turn->memory->variable(key, name, bytes, alignment);
}

}  // namespace millrace::emulator
