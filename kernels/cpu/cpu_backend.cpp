// Which code for the CPU is run: the baseline in the program, or a shared module beside it.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

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

std::string module_file(InstructionSet set) {
    return "millrace_cpu_" + name_of(set) + ".so";
}

/// Beside the program (in the build folder) or in lib/millrace beside its folder (installed); empty if in neither.
std::filesystem::path module_path(InstructionSet set) {
    std::error_code ignored;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    for (const auto& folder : {program.parent_path(), program.parent_path() / "../lib/millrace"}) {
        if (std::filesystem::exists(folder / module_file(set), ignored)) {
            return folder / module_file(set);
        }
    }
    return {};
}

/// A backend, or a sentence that says why there is none.
struct Attempt {
    std::unique_ptr<Backend<Float32>> backend;
    std::string problem;
};

/// Modules stay open until the program ends.
Attempt try_backend(int threads, InstructionSet set) {
    if (set == InstructionSet::baseline) {
        return {make_baseline_backend(threads), ""};
    }
    if (!machine_has(set)) {
        return {nullptr, "This machine does not have the instruction set x86-64-" + name_of(set) + "."};
    }
    const std::string file = module_file(set);
    const std::filesystem::path path = module_path(set);
    if (path.empty()) {
        return {nullptr, file + " is neither beside the program nor in ../lib/millrace."};
    }
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
        return {nullptr, file + " cannot be opened: " + dlerror() + "."};
    }
    void* factory = dlsym(module, cpu_module_factory_name);
    if (factory == nullptr) {
        return {nullptr, path.string() + " is not a CPU module of millrace."};
    }
    std::unique_ptr<Backend<Float32>> backend(
        reinterpret_cast<CpuModuleFactory*>(factory)(threads, MILLRACE_CPU_INTERFACE));
    if (backend == nullptr) {
        return {nullptr, path.string() + " was built from another version of millrace."};
    }
    return {std::move(backend), ""};
}

const char* forced_name() {
    return std::getenv("MILLRACE_CPU_ISA");
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
    std::vector<InstructionSet> sets;
    for (const InstructionSet set : {InstructionSet::baseline, InstructionSet::v3, InstructionSet::v4}) {
        if (try_backend(1, set).backend != nullptr) {
            sets.push_back(set);
        }
    }
    return sets;
}

std::unique_ptr<Backend<Float32>> make_cpu_backend(int threads, InstructionSet set) {
    Attempt attempt = try_backend(threads, set);
    if (attempt.backend == nullptr) {
        throw std::runtime_error(attempt.problem);
    }
    return std::move(attempt.backend);
}

std::unique_ptr<Backend<Float32>> make_cpu_backend(int threads) {
    if (const char* forced = forced_name(); forced != nullptr) {
        Attempt attempt = try_backend(threads, forced_set(forced));
        if (attempt.backend == nullptr) {
            throw std::runtime_error(std::string("MILLRACE_CPU_ISA asks for ") + forced +
                                     ", which is not to be had here. " + attempt.problem);
        }
        return std::move(attempt.backend);
    }
    for (const InstructionSet set : {InstructionSet::v4, InstructionSet::v3}) {
        if (Attempt attempt = try_backend(threads, set); attempt.backend != nullptr) {
            return std::move(attempt.backend);
        }
    }
    return make_baseline_backend(threads);
}

std::string cpu_backend_remark() {
    std::string remark;
    for (const InstructionSet set : {InstructionSet::v4, InstructionSet::v3}) {
        if (forced_name() != nullptr || !machine_has(set)) {
            continue;
        }
        const Attempt attempt = try_backend(1, set);
        if (attempt.backend != nullptr) {
            break;
        }
        remark += (remark.empty() ? "" : " ") + attempt.problem;
    }
    return remark;
}

}  // namespace millrace
