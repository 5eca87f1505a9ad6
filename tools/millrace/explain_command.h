// `millrace explain`: what binds a pipeline, and what one more of everything would change.
#pragma once

#include <cstdint>
#include <string>

#include "tools/millrace/options.h"

namespace millrace {

struct ExplainOptions {
    InputOptions scenario;
    std::string format = "table";  ///< "table" or "json"
    std::string dot;               ///< file for the graph as Graphviz text; empty: none
    std::int64_t jobs = 1;
    bool quiet = false;
};

/// Returns the exit code. Throws ScenarioError, UsageError, PipelineStuck.
int explain_command(const ExplainOptions& options);

}  // namespace millrace
