// The result of a run as a table for people.
#pragma once

#include <string>

#include "sim/run/replications.h"

namespace millrace {

/// Simulated means with their 95 % intervals beside formulas and published numbers, the staleness histogram, warnings,
/// and what it amounts to in words.
/// `overridden`: the scenario differs from its file, so what the file lists as published may be for other settings.
std::string run_table(const Scenario& scenario, const RunResult& result, bool overridden);

}  // namespace millrace
