// `millrace warm-start`: make theta_0 by supervised fine-tuning and keep it.
#pragma once

#include "tools/millrace/options.h"

namespace millrace {

/// Returns the exit code. Throws ScenarioError, UsageError, std::runtime_error.
int warm_start_command(const WarmStartOptions& options);

}  // namespace millrace
