// Why a pipeline is as fast as it is: its graphs' periods, the critical cycle in words, and what a change does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/explain/pipeline_graph.h"
#include "sim/run/replications.h"

namespace millrace {

/// What one activity adds to the critical cycle.
struct CyclePart {
    std::string activity;
    std::int64_t times = 0;   ///< edges of the cycle
    double duration_s = 0.0;  ///< all of them together
};

struct PeriodExplanation {
    PipelineGraph pipeline;  ///< of rollouts, or of batches where that would be too large
    MarkedCycle critical;    ///< what limits the updates
    double period_s = 0.0;   ///< per update, every time at its mean; exact or a lower bound, as `pipeline` says
    double floor_s = 0.0;    ///< per update: a lower bound for service times of any spread with these means
    /// Of a replay buffer that decouples the workers: rollouts that they make per update, by the graph.
    std::optional<double> rollouts_per_update;
    std::vector<CyclePart> parts;    ///< of the critical cycle, in order of first appearance; those that take time
    std::int64_t cycle_updates = 1;  ///< updates that pass in one walk around the critical cycle
    std::string binds;               ///< what binds, in full sentences
};

/// Throws PipelineStuck, naming what waits for what, if the pipeline deadlocks.
PeriodExplanation explain_period(const PipelineConfig& config);

/// The change of a metric between two runs with the same seed and replications, from their differences replication by
/// replication (common random numbers). None where not every replication of both defines the metric.
std::optional<Estimate> paired_difference(const RunResult& base, const RunResult& changed, const std::string& metric);

}  // namespace millrace
