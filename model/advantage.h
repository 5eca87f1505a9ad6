// From the rewards of a group to the advantage of each of its rollouts.
#pragma once

#include <span>

#include "sim/scenario/learner_settings.h"

namespace millrace {

/// With mean and standard deviation (of the population, 1/G) of the group's rewards r:
///   grpo       (r - mean) / (deviation + 1e-4); 0 when all rewards are equal        Shao et al. 2024
///   asymre     r - (mean + shift), so that shift -0.1 lifts even rollouts of equal reward   Arnal et al. 2025
///   reinforce  r - mean
/// The sizes of `rewards` and `advantages` must agree.
void write_advantages(const ObjectiveSettings& objective, std::span<const double> rewards,
                      std::span<double> advantages);

}  // namespace millrace
