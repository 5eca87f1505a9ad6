// `millrace sweep`: all designs of a sweep file, into a folder.
#pragma once

#include <cstdint>
#include <string>

#include "tools/millrace/options.h"

namespace millrace {

struct SweepCommandOptions {
    InputOptions sweep;
    std::string folder;
    std::int64_t shard = 1;  ///< of `shards`, counted from 1
    std::int64_t shards = 1;
    std::string backend = "auto";  ///< of learners
    std::int64_t jobs = 1;
    bool quiet = false;
    std::string command_line;
};

/// Returns the exit code.
int sweep_command(const SweepCommandOptions& options);

}  // namespace millrace
