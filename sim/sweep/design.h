// What a sweep file comes to: the designs to run, and what is asked of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/pareto/adaptive_replication.h"
#include "sim/scenario/scenario.h"

namespace millrace {

struct Family;  // sweep_family.h

/// The axes' paths and the values that a design has of them, as JSON, in the order of the file.
using AxisValues = std::vector<std::pair<std::string, std::string>>;

/// One point of a sweep: a scenario with the values of the axes put in.
struct Design {
    /// 16 hexadecimal digits, a hash of the resolved scenario: the same design has the same id wherever it is run.
    std::string id;
    std::string family;
    std::string base;              ///< file of the scenario it changes, as the sweep file names it; may be empty
    std::vector<std::string> set;  ///< every change to it as `path=value`, in order: the family's, then the axes'
    AxisValues values;
    std::vector<std::size_t> axes;     ///< by value: its axis, as a place among the family's; the same within a zip
    std::optional<Scenario> scenario;  ///< none when it is impossible
    std::string error;                 ///< why it is impossible; one line
    bool refined = false;              ///< not of the file but added in a gap of the frontier: sweep_growth.h
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
    /// In the order of families, then of axes, the last axis fastest; behind them those that were added. Ids are
    /// unique.
    std::vector<Design> designs;
    std::int64_t most_added = 0;        ///< designs that may be added in gaps of the frontier ("refine")
    std::vector<std::string> warnings;  ///< full sentences: designs that were left out because they stand there already
    /// The sweep file with its base scenarios inside, one line of canonical JSON: equal texts mean equal sweeps.
    std::string resolved_json;
    /// What designs are made of, and their seed; null in a sweep that was put together by hand, which cannot grow.
    std::shared_ptr<const std::vector<Family>> families;
    std::uint64_t common_seed = 1;
};

}  // namespace millrace
