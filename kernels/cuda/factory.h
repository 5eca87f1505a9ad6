// What libmillrace_cuda.so gives to the program that opens it.
#pragma once

#include <cstddef>

#include "kernels/backend.h"

namespace millrace {

/// Tells whether program and shared object were built from the same interface: a hash of the headers that define it,
/// put in by the build.
using CudaInterface = const char* (*)();
inline constexpr const char* cuda_interface_symbol = "millrace_cuda_interface";

/// A backend that the caller owns, or null with a sentence in `error`.
using CudaFactory = Backend<Mixed>* (*)(int device, char* error, std::size_t error_size);
inline constexpr const char* cuda_factory_symbol = "millrace_cuda_make_backend";

}  // namespace millrace
