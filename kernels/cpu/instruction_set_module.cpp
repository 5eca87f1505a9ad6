// The CPU backend of one instruction set as a shared module. Nothing but the factory is visible outside it: a linker
// that saw two versions of an inline function would keep one of them for all instruction sets.
#include <cstring>
#include <exception>

#include "kernels/cpu/fast_backend.h"

extern "C" __attribute__((visibility("default"))) millrace::Backend<millrace::Float32>* millrace_make_cpu_backend(
    int threads, const char* interface) noexcept {
    if (std::strcmp(interface, MILLRACE_CPU_INTERFACE) != 0) {
        return nullptr;
    }
    return new millrace::FastBackend<millrace::Float32>("CPU x86-64-" MILLRACE_INSTRUCTION_SET, threads);
}
