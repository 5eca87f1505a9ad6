// `millrace learn`: warm-start a model, improve it by reinforcement, and report.
#pragma once

#include "tools/millrace/options.h"

namespace millrace {

/// Returns the exit code. Throws ScenarioError, UsageError, std::runtime_error.
int learn_command(const LearnCommandOptions& options);

}  // namespace millrace
