// The CPU backend without any vector instructions beyond those of every x86-64 machine.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace millrace {

std::unique_ptr<Backend<Float32>> make_baseline_backend(int threads);

}  // namespace millrace
