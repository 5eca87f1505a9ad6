// Where a learner's numbers are computed: chosen on the command line, opened when it is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "kernels/backend.h"

namespace millrace {

/// The CPU computes in single precision, a GPU in bfloat16 with single-precision weights. Never null.
using AnyBackend = std::variant<std::unique_ptr<Backend<Float32>>, std::unique_ptr<Backend<Mixed>>>;

struct BackendChoice {
    AnyBackend backend;
    std::string remark;  ///< why a GPU, or a part of the CPU, is there and not used; sentences, or empty
};

/// `name` is "cpu", with `threads`; "cuda"; or "auto", which is the CPU as long as the CUDA kernels have not been
/// checked on hardware. Throws std::runtime_error when it is "cuda" and there is no GPU that can be used.
BackendChoice open_backend(const std::string& name, std::int64_t threads);

/// For people, with the number format: "CPU x86-64-v4, 2 threads (fp32)".
std::string describe(const AnyBackend& backend);

/// Backends of one kind compute the same bytes: "CPU x86-64-v4 (fp32)".
std::string kind_of(const AnyBackend& backend);

}  // namespace millrace
