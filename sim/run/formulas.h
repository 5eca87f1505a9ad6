// What the closed forms say about a scenario: the column beside the simulated numbers.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/scenario/scenario.h"

namespace millrace {

/// What the service laws alone determine, in GPU-seconds.
struct FirstOrderCosts {
    double gpu_s_per_rollout = 0.0;  ///< of a worker with all slots full (step law: mean-field, compute_ratio.h)
    double gpu_s_per_update = 0.0;   ///< C: trainers x time of an update
    double mu = 0.0;                 ///< imbalance: batch x gpu_s_per_rollout / gpu_s_per_update
};
FirstOrderCosts first_order_costs(const PipelineConfig& config);

/// Predictions by metric key, for those metrics that have one here. They assume full slots and no pauses; what the
/// simulation adds to them (synchronisation, groups, tails, waiting) is the reason to simulate. `costs` are those of
/// the scenario's pipeline.
std::map<std::string, double> formulas(const Scenario& scenario, const FirstOrderCosts& costs);

}  // namespace millrace
