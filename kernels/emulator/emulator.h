// Runs CUDA kernels on the CPU, one block after the other, to find mistakes in them; far too slow to compute with.
//
// What a kernel sees is in cuda_words.h; this header is for who launches and for the parts of the emulator. There are
// two ways to run the threads of a block, each a library of its own (see CMakeLists.txt):
//
//   fibers.cpp    Each CUDA thread is a fiber that runs until it has to wait for others. The order of the threads
//                 is chosen by set_lane_order, and the same order gives the same bits. Missing barriers show as wrong
//                 results, most of them as NaN, because shared memory is full of NaN when a block starts.
//   threads.cpp   Each CUDA thread is a thread of the system, for ThreadSanitizer. It judges by what is ordered by
//                 barriers and not by what happened to come first, so it finds the races that a fiber steps over.
//
// Both report, as EmulationError, what CUDA leaves undefined: a shuffle that reads a lane outside its mask or one that
// has exited, a barrier that some threads never reach, a launch that a device would refuse, a write beyond shared
// memory. Neither can tell when a thread waits for another one by reading memory in a loop: that hangs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <stdexcept>

namespace millrace {

struct uint3 {
    unsigned x = 0;
    unsigned y = 0;
    unsigned z = 0;
};

struct dim3 {
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    unsigned x;
    unsigned y;
    unsigned z;
};

inline constexpr int warpSize = 32;

// Where the running CUDA thread stands; the emulator sets them whenever it goes on with another one.
inline thread_local constinit uint3 threadIdx;
inline thread_local constinit uint3 blockIdx;
inline thread_local constinit dim3 blockDim;
inline thread_local constinit dim3 gridDim;

namespace emulator {

/// The kernel did what CUDA forbids or leaves undefined. The message names the kernel, the block and the thread.
class EmulationError : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
};

/// The order in which this thread's next launches run blocks, and the threads of a block: 0 is the natural order, 1
/// its reverse, and any other seed a shuffled one. A kernel that is right gives the same results in all of them.
void set_lane_order(std::uint64_t seed);

// ---- for cuda_words.h -----------------------------------------------------------------------------------------------

struct Launch {
    const char* kernel;
    dim3 grid;
    dim3 block;
    std::size_t shared_bytes;
};

/// Runs every thread of the launch; `body` calls the kernel. Throws the first error, after which the rest of the
/// launch has not happened.
void run(const Launch& launch, const std::function<void()>& body);

enum class Operation : std::uint8_t { barrier, sync_warp, ballot, shuffle, shuffle_xor, shuffle_down };

/// A thread asks to meet others: all of its block, or the lanes of its warp that are named in the mask.
struct Request {
    Operation operation;
    std::source_location where;
    unsigned mask = 0;
    std::uint64_t bits = 0;  ///< what the thread brings: the value to shuffle, or 0 or 1 for a ballot or __syncwarp
    unsigned operand = 0;    ///< of a shuffle: the source lane, the xor of lanes or the distance
    unsigned width = 32;     ///< of a shuffle: lanes that exchange among themselves
};

/// Waits until all have met; returns what this thread gets: the value of another lane, or one bit from each lane.
std::uint64_t meet(const Request& request);

void* dynamic_shared();

/// A shared variable of the block, the same for every thread and every call with the same key.
void* static_shared(const void* key, const char* name, std::size_t bytes, std::size_t alignment);

}  // namespace emulator
}  // namespace millrace
