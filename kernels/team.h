// A team is who works on one row together: one CPU core, or the 32 lanes of a warp.
//
// A row kernel is written once, against a team: lane l takes elements l, l + width, l + 2 width, ..., and sum() and
// max() combine what the lanes found and give the result to all of them. With SerialTeam it is an ordinary loop.
// The team of a CUDA warp is in kernels/cuda/warp_team.h.
#pragma once

#include "kernels/precision.h"

namespace millrace {

struct SerialTeam {
    static constexpr int width = 1;
    static constexpr int lane() { return 0; }
    template <typename Real>
    static constexpr Real sum(Real value) {
        return value;
    }
    template <typename Real>
    static constexpr Real max(Real value) {
        return value;
    }
    /// After it, what one lane wrote to memory is there for the others.
    static constexpr void sync() {}
};

}  // namespace millrace
