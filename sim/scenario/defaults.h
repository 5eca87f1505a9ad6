// Fills in what a scenario leaves out.
#pragma once

#include "sim/scenario/json_document.h"

namespace millrace {

/// Adds every key that is absent and has a default (vocabulary.h) where its object is present. An added node stands,
/// for error messages, where the object that misses it does.
void fill_defaults(JsonNode& root);

}  // namespace millrace
