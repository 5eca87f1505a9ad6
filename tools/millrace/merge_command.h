// `millrace merge`: the rows of a sweep's shards put together.
#pragma once

#include "tools/millrace/options.h"

namespace millrace {

/// Returns the exit code: exit_failed when rows are missing.
int merge_command(const MergeOptions& options);

}  // namespace millrace
