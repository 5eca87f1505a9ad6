// A sweep's frontier as one JSON document (DIR/pareto.json) and as one wide CSV table. Nothing in it depends on time,
// threads or hosts: equal rows give equal bytes.
#pragma once

#include <string>

#include "sim/sweep/pareto_report.h"

namespace millrace {

/// Indented JSON, ending in a newline. Designs stand in the order of the sweep. Throws std::logic_error rather than
/// write a number that is not finite.
std::string pareto_json(const Sweep& sweep, const std::string& sweep_hash, const ParetoReport& report);

/// A header and one row per design: its axes, membership, and of each metric mean and half-width; cells without a value
/// are empty.
std::string pareto_csv(const Sweep& sweep, const ParetoReport& report);

/// Where a design's runnable scenario stands in the sweep's folder: "frontier/<id>.json".
std::string frontier_file(const Design& design);

}  // namespace millrace
