// The words of CUDA C++ that an emulated kernel is written in. Included through kernels/launch.h only.
//
// They stand in namespace millrace, where the kernels are, so that a file may also include headers of the real CUDA.
// Each operation that meets other threads takes the place it is called from, for the error messages.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "kernels/emulator/emulator.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

#define MILLRACE_SHARED(Type, name)      \
    static const char name##_key = 0;    \
    ::std::type_identity_t<Type>& name = \
        ::millrace::emulator::static_shared_variable<::std::type_identity_t<Type>>(&name##_key, #name)

#define MILLRACE_DYNAMIC_SHARED(Type, name) \
    Type* const name = static_cast<Type*>(::millrace::emulator::dynamic_shared())

namespace millrace {

/// A stream of an emulated launch means nothing: the launch has ended when it returns.
using cudaStream_t = struct EmulatedStream*;

namespace emulator {

template <typename Type>
Type& static_shared_variable(const void* key, const char* name) {
    static_assert(std::is_trivially_default_constructible_v<Type>,
                  "CUDA has no shared variables of a type that initializes itself");
    return *static_cast<Type*>(static_shared(key, name, sizeof(Type), alignof(Type)));
}

template <typename Value>
Value shuffle(Operation operation, unsigned mask, Value value, unsigned operand, int width,
              const std::source_location& where) {
    static_assert(std::is_arithmetic_v<Value> && (sizeof(Value) == 4 || sizeof(Value) == 8),
                  "CUDA shuffles numbers of 4 and of 8 bytes");
    using Bits = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
    const std::uint64_t result =
        meet({operation, where, mask, std::bit_cast<Bits>(value), operand, static_cast<unsigned>(width)});
    return std::bit_cast<Value>(static_cast<Bits>(result));
}

}  // namespace emulator

/// Every thread gets its own copy of the arguments, as on a device.
template <typename... Parameters>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t, std::type_identity_t<Parameters>... arguments) {
    static_assert((std::is_trivially_copyable_v<Parameters> && ...),
                  "Arguments of a kernel travel to the device byte by byte, and never as references");
    emulator::run({name, grid, block, shared_bytes}, [&] { kernel(arguments...); });
}

inline void __syncthreads(const std::source_location& where = std::source_location::current()) {
    emulator::meet({emulator::Operation::barrier, where});
}

inline void __syncwarp(unsigned mask = 0xffffffffu,
                       const std::source_location& where = std::source_location::current()) {
    emulator::meet({emulator::Operation::sync_warp, where, mask});
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              const std::source_location& where = std::source_location::current()) {
    return static_cast<unsigned>(emulator::meet({emulator::Operation::ballot, where, mask, predicate != 0 ? 1u : 0u}));
}

template <typename Value>
Value __shfl_sync(unsigned mask, Value value, int source_lane, int width = warpSize,
                  const std::source_location& where = std::source_location::current()) {
    return emulator::shuffle(emulator::Operation::shuffle, mask, value, static_cast<unsigned>(source_lane), width,
                             where);
}

template <typename Value>
Value __shfl_xor_sync(unsigned mask, Value value, int lane_mask, int width = warpSize,
                      const std::source_location& where = std::source_location::current()) {
    return emulator::shuffle(emulator::Operation::shuffle_xor, mask, value, static_cast<unsigned>(lane_mask), width,
                             where);
}

template <typename Value>
Value __shfl_down_sync(unsigned mask, Value value, unsigned distance, int width = warpSize,
                       const std::source_location& where = std::source_location::current()) {
    return emulator::shuffle(emulator::Operation::shuffle_down, mask, value, distance, width, where);
}

/// Which lanes happen to run together is decided by the compiler and the device, differently from one to the next. No
/// emulation can be right about it, and no kernel should compute from it: name the lanes that take part instead.
unsigned __activemask() = delete;

}  // namespace millrace
