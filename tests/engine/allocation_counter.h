// Counts heap allocations in this binary: linking allocation_counter.cpp replaces global operator new.
#pragma once

#include <cstdint>

namespace millrace {

/// Calls of any form of operator new so far, by all threads.
std::uint64_t allocations();

}  // namespace millrace
