// `millrace run`: simulate a scenario and report.
#pragma once

#include "tools/millrace/options.h"

namespace millrace {

/// Returns the exit code. Throws ScenarioError, UsageError, PipelineStuck.
int run_command(const RunCommandOptions& options);

}  // namespace millrace
