// `millrace pareto`: the frontier of a sweep's folder.
#pragma once

#include <string>

#include "tools/millrace/options.h"

namespace millrace {

struct ParetoCommandOptions {
    std::string folder;
    double confidence = 0.95;
    std::string reference;         ///< values by objective with commas between; empty: beyond the worst means
    std::string format = "table";  ///< "table", "json" or "csv"
};

/// Reads DIR/sweep.json and DIR/merged.jsonl; writes DIR/pareto.json and, for each design that is on the front of the
/// means or undecided, a scenario DIR/frontier/<id>.json that `millrace run` takes (those of an earlier call that are
/// no longer among them are removed); prints the frontier. Writes nothing and fails when no design has values to
/// compare. Returns an exit code.
int pareto_command(const ParetoCommandOptions& options);

}  // namespace millrace
