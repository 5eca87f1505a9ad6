// The seeds of the models that learn in one command: far apart, so that none of one file's seed is one of another's.
#pragma once

#include <cstdint>

#include "sim/engine/random.h"

namespace millrace {

/// Of model `number`, counted over replications and their replicas, under the file's `seed`.
inline std::uint64_t learner_seed(std::uint64_t seed, std::int64_t number) {
    constexpr std::uint64_t purpose = 0x6c6561726e;  // "learn"
    return philox2x64({static_cast<std::uint64_t>(number), purpose}, seed)[0];
}

}  // namespace millrace
