// The part of a scenario that is measured rather than decided, read on its own: a calibration has nothing else.
#pragma once

#include "sim/scenario/json_document.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/vocabulary.h"

namespace millrace {

/// Reads workers, groups, reward, trainers, weight_sync, noise and price of a document whose defaults are filled in.
/// Keys that `vocabulary` does not know are errors there; a count that it leaves out is read as 1.
void read_measured(const JsonNode& root, const Vocabulary& vocabulary, Scenario& scenario, Diagnostics& diagnostics);

}  // namespace millrace
