// `millrace sweep`: all designs of a sweep file, into a folder.
#pragma once

#include "tools/millrace/options.h"

namespace millrace {

/// Returns the exit code.
int sweep_command(const SweepCommandOptions& options);

}  // namespace millrace
