// The random integers behind one prompt: as many as its task asks for, all addressed by the prompt's index.
#pragma once

#include <cstdint>

#include "kernels/random.h"

namespace millrace {

class PromptDraws {
   public:
    PromptDraws(std::uint64_t seed, LearnerPurpose purpose, std::uint64_t index)
        : seed_(seed), purpose_(purpose), index_(index) {}

    /// Uniform in 0 .. n - 1, for 1 <= n < 2^31. The multiply-shift bias is below n / 2^32.
    std::int64_t below(std::int64_t n) {
        if (drawn_ % 4 == 0) {
            bits_ = learner_bits(seed_, purpose_, index_, drawn_ / 4);
        }
        const std::uint64_t word = bits_.word[drawn_++ % 4];
        return static_cast<std::int64_t>((word * static_cast<std::uint64_t>(n)) >> 32);
    }

   private:
    std::uint64_t seed_;
    LearnerPurpose purpose_;
    std::uint64_t index_;
    std::uint32_t drawn_ = 0;
    Philox4x32 bits_{};
};

}  // namespace millrace
