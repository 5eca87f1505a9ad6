// What every kind of input file has in common: from the file's bytes to a document with its overrides.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/json_document.h"
#include "sim/scenario/vocabulary.h"

namespace millrace {

/// The contents of a file. Throws ScenarioError when it cannot be read.
std::string read_input_file(const std::string& path);

/// A text and the `--set` arguments that change it, ready for parse_input(). A byte order mark is left out.
Diagnostics diagnostics_of(std::string_view text, const std::string& file_name,
                           const std::vector<std::string>& overrides);

/// The document with the overrides applied in their order; they find the objects whose default has a kind. Throws
/// ScenarioError when it is no JSON or the result of a run; lesser faults stay in `diagnostics`.
JsonNode parse_input(Diagnostics& diagnostics, const Vocabulary& vocabulary);

/// Whether a text or document is meant as a sweep file, which has families of scenarios: sim/sweep/sweep_file.h.
bool is_sweep_file(std::string_view text);
bool is_sweep_file(const JsonNode& root);

/// The document on one line with sorted keys, without what concerns editors only: what a result quotes.
std::string resolved_json(JsonNode root);

}  // namespace millrace
