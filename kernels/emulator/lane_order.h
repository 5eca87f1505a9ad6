// The order in which blocks of a launch, and threads of a block, have their turn.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace::emulator {

/// The numbers below `count` in the order that set_lane_order chose; `salt` makes a shuffled order another one for
/// each block.
std::vector<unsigned> ordered(unsigned count, std::uint64_t salt);

}  // namespace millrace::emulator
