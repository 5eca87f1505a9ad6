// Whether the parts of a scenario fit together: a pipeline that would stop for ever is an error of the scenario.
#pragma once

#include "sim/scenario/json_document.h"
#include "sim/scenario/scenario.h"

namespace millrace {

/// Reports every contradiction between keys, each at the key that tells most. Checks that concern a key with an error
/// of its own are left out.
void check_consistency(const JsonNode& root, const Scenario& scenario, Diagnostics& diagnostics);

}  // namespace millrace
