// The result of a run as one JSON document and as one wide CSV row.
//
// The same scenario, seed and binary give the same bytes: times of day and hosts stand in the manifest only.
#pragma once

#include <string>

#include "sim/sweep/replications.h"

namespace millrace {

/// Indented JSON, ending in a newline: scenario (resolved), metrics, formulas, published, histograms, warnings, and how
/// the run went. Throws std::logic_error rather than write a number that is not finite.
std::string result_json(const Scenario& scenario, const RunResult& result);

/// Two lines: the header, and for each metric its mean and half-width (empty where there is none).
std::string result_csv(const Scenario& scenario, const RunResult& result);

}  // namespace millrace
