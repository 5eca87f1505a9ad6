// A sweep's frontier as a table for people.
#pragma once

#include <string>

#include "sim/sweep/pareto_report.h"

namespace millrace {

/// The designs that are on the front of the means or undecided, best in the first objective first, with the values of
/// their axes, objectives with 95 % half-widths and membership; hypervolumes; what failed; which designs to try next.
std::string pareto_table(const Sweep& sweep, const ParetoReport& report);

/// Designs that are not compared with the others, one a line with the reason, the first of many; empty when there are
/// none.
std::string failures_text(const Sweep& sweep, const ParetoReport& report);

}  // namespace millrace
