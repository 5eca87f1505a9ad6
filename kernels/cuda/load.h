// The CUDA backend, loaded when it is asked for and there is a GPU to run it on.
//
// It lies in a shared object of its own, libmillrace_cuda.so, which needs the 541 MB of cuBLASLt. A program that links
// this header's library needs neither, so it starts fast and runs on machines without a GPU.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace millrace {

/// The backend on GPU `device` (an index of find_cuda_devices()). Throws std::runtime_error with a sentence that says
/// what is missing: the driver, a GPU, a new enough driver or GPU, the shared object.
///
/// The shared object is looked for beside the program (in the build folder) and in ../lib/millrace (installed);
/// MILLRACE_CUDA_LIBRARY names another.
std::unique_ptr<Backend<Mixed>> make_cuda_backend(int device = 0);

}  // namespace millrace
