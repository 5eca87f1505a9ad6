// `millrace learn`: warm-start a model, improve it by reinforcement, and report.
#pragma once

#include <cstdint>
#include <string>

#include "tools/millrace/options.h"

namespace millrace {

struct LearnCommandOptions {
    InputOptions input;
    std::string backend = "auto";  ///< "auto", "cpu" or "cuda"
    std::int64_t jobs = 1;         ///< threads of the CPU
    std::string format = "table";  ///< "table", "json" or "csv"
    std::string output;            ///< file for the JSON result; empty: none, "-": standard output
    std::string curve;             ///< file for the rows as they come; empty: none
    std::string checkpoint;        ///< folder to resume from; empty: none
    bool resume = false;
    bool quiet = false;
    std::string command_line;
};

/// Returns the exit code. Throws ScenarioError, UsageError, std::runtime_error.
int learn_command(const LearnCommandOptions& options);

}  // namespace millrace
