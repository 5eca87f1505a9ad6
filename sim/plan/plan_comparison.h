// What a plan's recommendation is compared with: other designs, simulated as thoroughly as itself.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/plan_candidates.h"

namespace millrace {

/// Whether an excess leaves two designs equally good, as far as can be told.
bool is_tied(const Estimate& excess);

/// Design i beside the chosen one, as far as both have been simulated.
PlanAlternative compared_with(const PlanCandidates& all, std::size_t chosen, std::size_t i, std::string what);

/// The best on-policy design, unless that is what was chosen, and the best one of the other kind of store. Few that
/// have not been tried are simulated shortly, in the order `by_bound`, where too few are known to tell.
std::vector<PlanAlternative> reference_designs(PlanCandidates& all, const std::vector<std::size_t>& by_bound,
                                               std::size_t chosen, const PlanEffort& effort);

/// The designs one step of one decision away from the chosen one.
std::vector<PlanAlternative> deviations(PlanCandidates& all, const PlanGrid& grid, std::size_t chosen,
                                        const PlanEffort& effort);

/// Of the designs `tried`, none of which meets the limits, the one that exceeds them least; of those that do so by
/// nearly as little (plan_staleness_indifference) the simplest, then the one with the least objective. Empty when none
/// can run.
std::optional<PlanEvaluation> nearest_design(PlanCandidates& all, const std::vector<std::size_t>& tried,
                                             const PlanEffort& effort);

}  // namespace millrace
