// Fills in what an input file leaves out.
#pragma once

#include "sim/scenario/json_document.h"
#include "sim/scenario/vocabulary.h"

namespace millrace {

/// These add every key that is absent and has a default (vocabulary.h) where its object is present. An added node
/// stands, for error messages, where the object that misses it does.
void fill_scenario_defaults(JsonNode& root);
void fill_learn_defaults(JsonNode& root);
void fill_calibration_defaults(JsonNode& root);

/// Adds the absent objects whose default is one of their kinds, so that overrides can change a key of them.
void fill_default_kinds(JsonNode& root, const Vocabulary& vocabulary);

}  // namespace millrace
