// What the graphs of a pipeline (pipeline_graph.h) are made from: mean times, which rollouts an update needs, and which
// features of the scenario such a graph leaves out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/pipeline/config.h"

namespace millrace {

/// Rounded towards minus infinity, as indices of earlier rounds need it; b > 0.
constexpr std::int64_t floor_of(std::int64_t a, std::int64_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
}
constexpr std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
    return -floor_of(-a, b);
}

/// Mean times, in seconds.
struct PipelineTimes {
    double shared = 0.0;      ///< of a rollout: what its worker spends whether or not others run beside it
    double own = 0.0;         ///< of a rollout: what it adds to the steps of all that run beside it
    double full_gpu_s = 0.0;  ///< GPU-seconds per rollout of a worker with full slots
    double grading = 0.0;
    double update = 0.0;
    double transfer = 0.0;
    std::int64_t slots = 1;   ///< of one worker, as far as its memory carries them
    bool slows_down = false;  ///< a rollout takes longer beside others
    bool constant = true;

    double alone() const { return shared + own; }
};
PipelineTimes times_of(const PipelineConfig& config);

/// Which rollouts an update needs and an admission permits, by counting. Updates and rollouts are numbered from 0.
struct PipelineCounts {
    bool waits = true;            ///< updates wait for rollouts
    std::int64_t per_update = 1;  ///< rollouts that one update more needs
    std::int64_t first = 1;       ///< what the first update needs
    std::int64_t group = 1;
    bool queue = false;
    std::optional<std::int64_t> opening;  ///< tokens that admission opens with; none: it does not limit
    bool transfers = true;                ///< often enough for the graph to contain them
    std::int64_t repeats = 1;             ///< after so many updates the counting, and weight_sync.every, start again

    /// Rollouts that must have been stored before update u begins.
    std::int64_t needed(std::int64_t u) const {
        return queue ? ceil_of((u + 1) * per_update, group) * group : first + u * per_update;
    }
    /// Updates that must have given their tokens back before rollout i may start; below 1: none.
    std::int64_t returns_before(std::int64_t i) const { return ceil_of(i + 1 - *opening, per_update); }
};
PipelineCounts counts_of(const PipelineConfig& config);

/// Why the graph of rollouts is a lower bound only, each half a sentence; empty if it is exact for constant times.
std::vector<std::string> left_out(const PipelineConfig& config, const PipelineTimes& times,
                                  const PipelineCounts& counts);

}  // namespace millrace
