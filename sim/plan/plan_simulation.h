// What a plan's designs are judged by, and why the recommended one costs what it costs.
#pragma once

#include <atomic>

#include "sim/plan/plan.h"

namespace millrace {

/// One replication of a scenario with a fixed warm-up: the numbers that `millrace run` has for it.
PlanEvaluator plan_simulation(const std::atomic<bool>* interrupt);

/// noise/relative_variance taken apart: each is what the batches that were really drawn would have if the rest did
/// nothing.
struct VarianceParts {
    double all = 1.0;
    double staleness = 1.0;  ///< no repeats, no coupling: the mean sigma^2 of the samples over that of a fresh one
    double reuse = 1.0;      ///< flat sigma^2: repeats and coupling
    double repeats = 1.0;    ///< flat sigma^2, rho = 0: the same rollout twice in a batch
};

/// Of the replications of a scenario with a fixed warm-up. All 1 for a scenario without noise.
VarianceParts variance_parts(const Scenario& scenario, const PlanControl& control);

/// What keeps the updates from coming faster, in sentences: the critical cycle of the pipeline's graph
/// (explain.h).
std::string what_binds(const Scenario& scenario);

}  // namespace millrace
