// `millrace merge`: the rows of a sweep's shards put together.
#pragma once

#include <string>

#include "tools/millrace/options.h"

namespace millrace {

struct MergeOptions {
    std::string folder;
    bool partial = false;  ///< merge what is there
};

/// Returns the exit code: exit_failed when rows are missing.
int merge_command(const MergeOptions& options);

}  // namespace millrace
