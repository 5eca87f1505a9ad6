// The instruction sets that the CPU backend is compiled for, and which of them this machine has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace millrace {

/// Names of the x86-64 psABI: "baseline" (SSE2), "v3" (AVX2 and FMA), "v4" (AVX-512).
enum class InstructionSet { baseline, v3, v4 };

std::string name_of(InstructionSet set);

/// Those that this machine can execute and whose code can be opened, from narrow to wide.
std::vector<InstructionSet> available_instruction_sets();

/// Throws std::runtime_error where `set` is not available.
std::unique_ptr<Backend<Float32>> make_cpu_backend(int threads, InstructionSet set);

/// The baseline code in double precision: the tests compare it with make_reference_backend().
std::unique_ptr<Backend<Float64>> make_cpu_backend_float64(int threads);

/// The one symbol of a shared module millrace_cpu_v3.so or millrace_cpu_v4.so. Returns null if it was
/// not built from the same headers as the program: `interface` is a hash of those.
using CpuModuleFactory = Backend<Float32>*(int threads, const char* interface);
inline constexpr const char* cpu_module_factory_name = "millrace_make_cpu_backend";

}  // namespace millrace
