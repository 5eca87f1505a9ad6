// `--set path=value`: changes to a scenario from the command line, made before it is decoded.
#pragma once

#include "sim/scenario/json_document.h"

namespace millrace {

/// Applies override number `source` of `diagnostics` (from 1) to the document. The path is dotted, a list's elements go
/// by number; the value is JSON, and what is not JSON is taken as a string. A key that is not there yet is made:
/// whether it may be there is the decoder's business.
void apply_override(JsonNode& root, int source, Diagnostics& diagnostics);

}  // namespace millrace
