// What a sweep file comes to: the designs to run, and what is asked of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/pareto/adaptive_replication.h"
#include "sim/scenario/scenario.h"

namespace millrace {

/// One point of a sweep: a scenario with the values of the axes put in.
struct Design {
    /// 16 hexadecimal digits, a hash of the resolved scenario: the same design has the same id wherever it is run.
    std::string id;
    std::string family;
    std::string base;              ///< file of the scenario it changes, as the sweep file names it; may be empty
    std::vector<std::string> set;  ///< every change to it as `path=value`, in order: the family's, then the axes'
    std::vector<std::pair<std::string, std::string>> values;  ///< axis path and its value as JSON, in the file's order
    std::optional<Scenario> scenario;                         ///< none when it is impossible
    std::string error;                                        ///< why it is impossible; one line
};

struct SweepObjective {
    std::string metric;  ///< a metric key, e.g. "compute/gamma_simulated"
    bool minimize = true;
};

struct Sweep {
    std::string name;
    std::string description;
    std::vector<SweepObjective> objectives;  ///< 2 or 3
    ReplicationPlan replications;
    std::vector<Design> designs;  ///< in the order of families, then of axes, the last axis fastest; ids are unique
    std::vector<std::string> warnings;  ///< full sentences: designs that were left out because they stand there already
    /// The sweep file with its base scenarios inside, one line of canonical JSON: equal texts mean equal sweeps.
    std::string resolved_json;
};

}  // namespace millrace
