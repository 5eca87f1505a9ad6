// From the text of a sweep file to a Sweep, or to an error that says where and what.
//
// A family is a base scenario with changes: those of its "set", which every design of it gets, then one value of each
// axis. A combination that satisfies the family's constraints is a design. The rules that are not plain from the file:
//
//   * "set" is applied in the order of its paths, so that a whole object stands before its parts.
//   * Constraints see the scenario with its defaults, before it is checked: they are there to leave out what a check
//     would refuse. What passes them and is refused is an impossible design, which tells why; a family of impossible
//     designs only is an error, and so is a value of an axis that is wrong by itself (of the wrong type, out of the
//     range of its key) in every combination with it.
//   * A design that is the same scenario as an earlier one, of its own or another family, is left out with a warning:
//     families may overlap, and an axis may have no effect where its part of the pipeline is missing.
//   * Designs compare under common random numbers: a family whose set and axes do not state the seed has the first
//     family's, whatever its base says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/json_document.h"
#include "sim/sweep/design.h"

namespace millrace {

/// Reads a sweep file and the base scenarios it names, whose paths are relative to it. `path=value` overrides change
/// the sweep file itself ("replications=5", "families.0.axes.1.values=[2,4]"). Throws ScenarioError with everything
/// that is wrong; what is wrong with a base scenario is reported in that file.
Sweep load_sweep(const std::string& path, const std::vector<std::string>& overrides);

/// The same for a text; `file_name` appears in messages and is what base scenarios are relative to.
Sweep decode_sweep(std::string_view text, const std::string& file_name, const std::vector<std::string>& overrides);

/// Decodes Sweep::resolved_json, or a sweep file whose bases stand in it: no other file is read. Gives the same
/// designs, ids and resolved_json.
Sweep decode_resolved_sweep(std::string_view text, const std::string& file_name);

}  // namespace millrace
