// The backends that every build has.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"

namespace millrace {

/// The CPU in single precision, with the widest vector instructions that this machine has and whose code can be opened
/// (name() says which); MILLRACE_CPU_ISA=baseline, v3 or v4 in the environment forces a level. Throws
/// std::runtime_error if that is none or cannot be had here. `threads` >= 1; results are the same bytes for any number.
std::unique_ptr<Backend<Float32>> make_cpu_backend(int threads);

/// Where make_cpu_backend(threads) has to do with narrower instructions than the machine's: what is wrong with the code
/// for the wider ones, in sentences. Otherwise empty.
std::string cpu_backend_remark();

/// The reference of the tests: double precision, every operation in its plainest form.
std::unique_ptr<Backend<Float64>> make_reference_backend(int threads);

}  // namespace millrace
