#include "sim/run/result_document.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int document_version = 1;

double finite(const std::string& key, double value) {
    if (!std::isfinite(value)) {
        throw std::logic_error("the metric " + key + " is not a finite number");
    }
    return value;
}

/// Quoted as RFC 4180 has it: a quotation mark inside is doubled.
std::string csv_text(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    }
    return quoted + "\"";
}

}  // namespace

Json estimate_json(const std::string& key, const Estimate& estimate) {
    Json json;
    json["mean"] = finite(key, estimate.mean);
    if (estimate.half_width) {
        json["half_width"] = finite(key, *estimate.half_width);
    }
    json["replications"] = estimate.replications;
    if (!estimate.note.empty()) {
        json["note"] = estimate.note;
    }
    return json;
}

std::string result_json(const Scenario& scenario, const RunResult& result) {
    return result_document(scenario, result).dump(2) + "\n";
}

Json result_document(const Scenario& scenario, const RunResult& result) {
    Json document;
    document["millrace_result"] = document_version;
    document["scenario"] = Json::parse(scenario.resolved_json);
    document["metrics"] = Json::object();
    for (const auto& [key, estimate] : result.metrics) {
        document["metrics"][key] = estimate_json(key, estimate);
    }
    document["undefined"] = Json(result.undefined);
    document["formulas"] = Json::object();
    for (const auto& [key, value] : result.formulas) {
        document["formulas"][key] = finite(key, value);
    }
    document["published"] = Json::array();
    for (const Published& published : scenario.published) {
        document["published"].push_back(
            {{"metric", published.metric}, {"value", published.value}, {"source", published.source}});
    }
    document["histograms"] = Json::object();
    for (const auto& [key, histogram] : result.histograms) {
        document["histograms"][key] = {{"total", histogram.total()}, {"counts", histogram.counts()}};
    }
    document["warnings"] = result.warnings;
    document["replications"] = result.replications_done;
    document["warmup_updates"] = result.warmup_updates;
    document["events"] = result.events;
    char digest[17];
    std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(result.order_digest));
    document["order_digest"] = digest;
    document["interrupted"] = result.interrupted;
    return document;
}

std::string result_csv(const Scenario& scenario, const RunResult& result) {
    std::string header = "name,seed,replications,warmup_updates";
    std::string row = csv_text(scenario.name) + "," + std::to_string(scenario.seed) + "," +
                      std::to_string(result.replications_done) + "," + std::to_string(result.warmup_updates);
    for (const auto& [key, estimate] : result.metrics) {
        header += "," + key + "," + key + ":half_width";
        row += "," + Json(finite(key, estimate.mean)).dump() + ",";
        row += estimate.half_width ? Json(finite(key, *estimate.half_width)).dump() : "";
    }
    return header + "\n" + row + "\n";
}

}  // namespace millrace
