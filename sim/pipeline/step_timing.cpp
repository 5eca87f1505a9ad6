#include "sim/pipeline/step_timing.h"

#include <cmath>

namespace millrace {

StepTiming StepTiming::from(const WorkersConfig& workers) {
    if (const auto* step = std::get_if<StepService>(&workers.service)) {
        const StepLaw& law = step->law;
        return {law.base_s * 1e9, law.per_sequence_s * 1e9, law.per_context_token_s * 1e9,
                law.prefill_per_token_s * 1e9};
    }
    return {.per_sequence_ns = 1.0};
}

std::int64_t StepEpoch::boundary_at_or_after(const StepTiming& law, Duration since_start) const {
    if (since_start.ns <= 0) {
        return 0;
    }
    // elapsed(m) is q m^2 + l m + prefill: solve for a first guess, then settle the rounding exactly.
    const auto n = static_cast<double>(sequences);
    const double q = 0.5 * law.per_context_token_ns * n;
    const double l =
        law.base_ns + law.per_sequence_ns * n + law.per_context_token_ns * static_cast<double>(context_tokens) - q;
    const double target =
        static_cast<double>(since_start.ns) - law.prefill_per_token_ns * static_cast<double>(prefill_tokens);
    double guess = 1.0;
    if (target > 0.0) {
        // The root of the quadratic in the form that does not cancel and that holds for q = 0.
        guess = 2.0 * target / (l + std::sqrt(l * l + 4.0 * q * target));
    }
    auto steps = std::isfinite(guess) && guess > 1.0 ? static_cast<std::int64_t>(guess) : std::int64_t{1};
    while (elapsed(law, steps) < since_start) {
        ++steps;
    }
    while (steps > 1 && elapsed(law, steps - 1) >= since_start) {
        --steps;
    }
    return steps;
}

}  // namespace millrace
