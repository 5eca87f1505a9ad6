// Counter-based random numbers for the learner: the same on every backend, whatever the order of the draws.
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011), the 32-bit
// variant because GPUs multiply 32-bit words. A draw is addressed by what it is for, never by when it is made.
#pragma once

#include <cstdint>

#include "kernels/precision.h"

namespace millrace {

struct Philox4x32 {
    std::uint32_t word[4];
};

/// 128 random bits for a counter of four words under a key of two.
MILLRACE_HOST_DEVICE inline Philox4x32 philox4x32(Philox4x32 counter, std::uint64_t key) {
    auto key0 = static_cast<std::uint32_t>(key);
    auto key1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter.word[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter.word[2];
        counter = {{static_cast<std::uint32_t>(b >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(b),
                    static_cast<std::uint32_t>(a >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(a)}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

/// What a draw of the learner is for. Values are part of the reproducibility contract: append, never renumber.
enum class LearnerPurpose : std::uint32_t {
    initial_weights = 1,  ///< index = parameter
    train_prompt = 2,     ///< index = prompt
    held_out_prompt = 3,  ///< index = prompt
    supervised_prompt = 4,
    sample_token = 5,  ///< index = rollout, step = position
    test = 100,
};

/// Random bits of draw (`index`, `step`) of `purpose` under `seed`.
MILLRACE_HOST_DEVICE inline Philox4x32 learner_bits(std::uint64_t seed, LearnerPurpose purpose, std::uint64_t index,
                                                    std::uint32_t step = 0) {
    return philox4x32({{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), step,
                        static_cast<std::uint32_t>(purpose)}},
                      seed);
}

/// Uniform in the open interval (0, 1): a multiple of 2^-23 plus half of one, so a float holds it exactly.
MILLRACE_HOST_DEVICE inline float uniform_from(std::uint32_t bits) {
    return (static_cast<float>(bits >> 9) + 0.5f) * 0x1p-23f;
}

}  // namespace millrace
