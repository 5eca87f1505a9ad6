// How long decode steps take, in closed form.
//
// A step of n sequences that hold K context tokens takes a + b n + c K; each sequence gains a token, so K grows by n
// per step. While the batch stays the same, m steps therefore take m (a + b n) + c (m K + n m (m - 1) / 2), plus the
// prefill of whoever joined at the first of them. This is what makes a rollout cost O(log n) instead of O(tokens).
#pragma once

#include <cstdint>

#include "sim/engine/time.h"
#include "sim/pipeline/config.h"

namespace millrace {

/// Coefficients in nanoseconds. Under the first-order law a "step" is one nanosecond of GPU work for each running
/// rollout, so n rollouts take n nanoseconds per step: processor sharing.
struct StepTiming {
    double base_ns = 0.0;
    double per_sequence_ns = 0.0;
    double per_context_token_ns = 0.0;
    double prefill_per_token_ns = 0.0;

    static StepTiming from(const WorkersConfig& workers);
};

/// The batch of one worker between two changes of it.
struct StepEpoch {
    std::int64_t sequences = 0;       ///< n
    std::int64_t context_tokens = 0;  ///< K at the start of the epoch
    std::int64_t prefill_tokens = 0;  ///< prompt tokens of the sequences that joined at the start

    /// Time from the start of the epoch to the end of its step `steps` >= 0, to the nearest nanosecond.
    Duration elapsed(const StepTiming& law, std::int64_t steps) const {
        if (steps == 0) {
            return {};
        }
        const auto m = static_cast<double>(steps);
        const auto n = static_cast<double>(sequences);
        const auto K = static_cast<double>(context_tokens);
        const double decode = m * (law.base_ns + law.per_sequence_ns * n);
        const double attention = law.per_context_token_ns * (m * K + n * (m * (m - 1.0) / 2.0));
        const double prefill = law.prefill_per_token_ns * static_cast<double>(prefill_tokens);
        return duration_from_ns(decode + attention + prefill);
    }

    /// The first step boundary that lies at or after `since_start`: the smallest m >= 0 with elapsed(m) >= since_start.
    std::int64_t boundary_at_or_after(const StepTiming& law, Duration since_start) const;
};

}  // namespace millrace
