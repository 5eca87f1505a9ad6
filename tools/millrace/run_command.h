// `millrace run`: simulate a scenario and report.
#pragma once

#include <cstdint>
#include <string>

#include "tools/millrace/options.h"

namespace millrace {

struct RunCommandOptions {
    InputOptions scenario;
    std::string format = "table";  ///< "table", "json" or "csv"
    std::string output;            ///< file for the JSON result; empty: none, "-": standard output
    std::string steps;             ///< file for the step log; empty: none
    std::string backend = "auto";  ///< of a learner: "auto", "cpu" or "cuda"
    std::string curve;             ///< file for the rows of learning curves; empty: none
    std::string checkpoint;        ///< folder to resume learning from; empty: none
    bool resume = false;
    std::int64_t jobs = 1;
    bool quiet = false;
    bool changes_model = false;  ///< --set was given: published numbers may be for other settings
    std::string command_line;    ///< for the manifest
};

/// Returns the exit code. Throws ScenarioError, UsageError, PipelineStuck.
int run_command(const RunCommandOptions& options);

}  // namespace millrace
