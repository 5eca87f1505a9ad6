// Which code for the CPU is run: the baseline in the program, or a shared module beside it.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "kernels/backends.h"
#include "kernels/cpu/baseline_backend.h"
#include "kernels/cpu/instruction_set.h"

namespace millrace {

namespace {

bool machine_has(InstructionSet set) {
#if defined(__x86_64__)
    switch (set) {
        case InstructionSet::baseline:
            return true;
        case InstructionSet::v3:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                   __builtin_cpu_supports("bmi2");
        case InstructionSet::v4:
            return machine_has(InstructionSet::v3) && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    }
    return false;
#else
    return set == InstructionSet::baseline;
#endif
}

/// Beside the program (in the build folder) or in lib/millrace beside its folder (installed); empty if in neither.
std::filesystem::path module_path(InstructionSet set) {
    std::error_code ignored;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const std::string file = "millrace_cpu_" + name_of(set) + ".so";
    for (const auto& folder : {program.parent_path(), program.parent_path() / "../lib/millrace"}) {
        if (std::filesystem::exists(folder / file, ignored)) {
            return folder / file;
        }
    }
    return {};
}

/// Modules stay open until the program ends.
CpuModuleFactory* open_module(const std::filesystem::path& path) {
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
        throw std::runtime_error(std::string("The CPU module cannot be opened: ") + dlerror() + ".");
    }
    void* factory = dlsym(module, cpu_module_factory_name);
    if (factory == nullptr) {
        throw std::runtime_error(path.string() + " is not a CPU module of millrace.");
    }
    return reinterpret_cast<CpuModuleFactory*>(factory);
}

InstructionSet forced_set(const std::string& name) {
    for (const InstructionSet set : {InstructionSet::baseline, InstructionSet::v3, InstructionSet::v4}) {
        if (name == name_of(set)) {
            return set;
        }
    }
    throw std::runtime_error("MILLRACE_CPU_ISA is \"" + name + "\"; it must be baseline, v3 or v4.");
}

}  // namespace

std::string name_of(InstructionSet set) {
    switch (set) {
        case InstructionSet::baseline:
            return "baseline";
        case InstructionSet::v3:
            return "v3";
        case InstructionSet::v4:
            return "v4";
    }
    return "";
}

std::vector<InstructionSet> available_instruction_sets() {
    std::vector<InstructionSet> sets{InstructionSet::baseline};
    for (const InstructionSet set : {InstructionSet::v3, InstructionSet::v4}) {
        if (machine_has(set) && !module_path(set).empty()) {
            sets.push_back(set);
        }
    }
    return sets;
}

std::unique_ptr<Backend<Float32>> make_cpu_backend(int threads, InstructionSet set) {
    if (set == InstructionSet::baseline) {
        return make_baseline_backend(threads);
    }
    if (!machine_has(set)) {
        throw std::runtime_error("This machine does not have the instruction set x86-64-" + name_of(set) + ".");
    }
    const std::filesystem::path path = module_path(set);
    if (path.empty()) {
        throw std::runtime_error("millrace_cpu_" + name_of(set) +
                                 ".so is neither beside the program nor in ../lib/millrace.");
    }
    std::unique_ptr<Backend<Float32>> backend(open_module(path)(threads, MILLRACE_CPU_INTERFACE));
    if (backend == nullptr) {
        throw std::runtime_error(path.string() + " was built from another version of millrace.");
    }
    return backend;
}

std::unique_ptr<Backend<Float32>> make_cpu_backend(int threads) {
    if (const char* forced = std::getenv("MILLRACE_CPU_ISA"); forced != nullptr) {
        return make_cpu_backend(threads, forced_set(forced));
    }
    return make_cpu_backend(threads, available_instruction_sets().back());
}

}  // namespace millrace
