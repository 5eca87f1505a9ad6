// The result of a run as one JSON document and as one wide CSV row.
//
// The same scenario, seed and binary give the same bytes: times of day and hosts stand in the manifest only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/run/replications.h"

namespace millrace {

/// Indented JSON, ending in a newline: scenario (resolved), metrics, formulas, published, histograms, warnings, and how
/// the run went. Throws std::logic_error rather than write a number that is not finite.
std::string result_json(const Scenario& scenario, const RunResult& result);

/// The same before it is text, for whoever has a section to add.
nlohmann::ordered_json result_document(const Scenario& scenario, const RunResult& result);

/// An estimate as every result document writes it. Throws std::logic_error when the metric `key` is not finite.
nlohmann::ordered_json estimate_json(const std::string& key, const Estimate& estimate);

/// Two lines: the header, and for each metric its mean and half-width (empty where there is none).
std::string result_csv(const Scenario& scenario, const RunResult& result);

}  // namespace millrace
