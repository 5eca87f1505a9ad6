// `millrace devices`: what this machine can compute a learner on.
#pragma once

#include <string>

namespace millrace {

/// Text that ends in a newline: the CPU with the instruction set that is used, and the GPUs or why there are none.
std::string devices_report();

}  // namespace millrace
