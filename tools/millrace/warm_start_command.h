// `millrace warm-start`: make theta_0 by supervised fine-tuning and keep it.
#pragma once

#include <cstdint>
#include <string>

#include "tools/millrace/options.h"

namespace millrace {

struct WarmStartOptions {
    InputOptions input;
    std::string backend = "auto";
    std::int64_t jobs = 1;
    std::string output;  ///< file for theta_0
};

/// Returns the exit code. Throws ScenarioError, UsageError, std::runtime_error.
int warm_start_command(const WarmStartOptions& options);

}  // namespace millrace
