// From the text of a scenario file to a Scenario, or to an error that says where and what.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/diagnostics.h"
#include "sim/scenario/scenario.h"

namespace millrace {

/// Reads a scenario file and applies `path=value` overrides in their order. Throws ScenarioError with everything that
/// is wrong.
Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides);

/// The same for a text; `file_name` only appears in messages.
Scenario decode_scenario(std::string_view text, const std::string& file_name,
                         const std::vector<std::string>& overrides);

}  // namespace millrace
