#include "sim/sweep/pareto_document.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/run/result_document.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int document_version = 1;

double finite(double value) {
    if (!std::isfinite(value)) {
        throw std::logic_error("a hypervolume is not a finite number: the objectives are out of any sensible range");
    }
    return value;
}

Json hypervolume_json(const HypervolumeEstimate& volume) {
    Json json;
    json["value"] = finite(volume.value);
    json["mean"] = finite(volume.mean);
    json["half_width"] = volume.half_width ? Json(finite(*volume.half_width)) : Json();
    if (volume.half_width) {
        // No area is negative, though the interval of an estimate may reach there.
        json["interval"] = {std::max(0.0, volume.mean - *volume.half_width),
                            std::max(0.0, volume.mean + *volume.half_width)};
    }
    if (!volume.note.empty()) {
        json["note"] = volume.note;
    }
    return json;
}

Json values_json(const AxisValues& values) {
    Json json = Json::object();
    for (const auto& [path, value] : values) {
        json[path] = Json::parse(value);
    }
    return json;
}

Json gap_json(const Sweep& sweep, const FrontierGap& gap) {
    Json json;
    json["between"] = {sweep.designs[gap.from].id, sweep.designs[gap.to].id};
    json["width"] = finite(gap.width);
    return json;
}

Json refinement_json(const Sweep& sweep, const Refinement& refinement) {
    Json json;
    json["most_added"] = sweep.most_added;
    json["added"] =
        std::count_if(sweep.designs.begin(), sweep.designs.end(), [](const Design& d) { return d.refined; });
    json["proposed"] = Json::array();
    for (const ProposedDesign& proposal : refinement.proposed) {
        Json entry = gap_json(sweep, proposal.gap);
        entry["family"] = proposal.design.family;
        entry["values"] = values_json(proposal.design.values);
        json["proposed"].push_back(std::move(entry));
    }
    json["refused"] = Json::array();
    for (const RefusedGap& refused : refinement.refused) {
        Json entry = gap_json(sweep, refused.gap);
        entry["reason"] = refused.reason;
        json["refused"].push_back(std::move(entry));
    }
    if (!refinement.note.empty()) {
        json["note"] = refinement.note;
    }
    return json;
}

Json design_json(const Design& design, const ParetoDesign& result) {
    Json json;
    json["design"] = design.id;
    json["family"] = design.family;
    json["refined"] = design.refined;
    json["values"] = values_json(design.values);
    json["set"] = design.set;
    json["base"] = design.base;
    json["replications"] = result.replications;
    if (!result.error.empty()) {
        json["error"] = result.error;
        return json;
    }
    json["warmup_updates"] = result.warmup_updates;
    json["metrics"] = Json::object();
    for (const auto& [key, metric] : result.metrics) {
        Json& entry = json["metrics"][key] = estimate_json(key, metric);
        if (!metric.half_width) {
            entry["half_width"] = nullptr;
        }
    }
    json["undefined"] = result.undefined.empty() ? Json::object() : Json(result.undefined);
    json["membership"] = membership_name(result.decision.membership);
    json["on_front"] = result.decision.leads_by_means;
    if (is_of_interest(result)) {
        json["scenario"] = frontier_file(design);
    }
    return json;
}

/// Quoted as RFC 4180 has it where that is needed.
std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) {
        return text;
    }
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    }
    return quoted + "\"";
}

/// In the order in which they first appear.
template <typename Designs, typename Names>
std::vector<std::string> union_of(const Designs& designs, Names names) {
    std::vector<std::string> all;
    for (const auto& design : designs) {
        for (const auto& entry : names(design)) {
            if (std::find(all.begin(), all.end(), entry.first) == all.end()) {
                all.push_back(entry.first);
            }
        }
    }
    return all;
}

}  // namespace

std::string frontier_file(const Design& design) {
    return "frontier/" + design.id + ".json";
}

std::string pareto_json(const Sweep& sweep, const std::string& sweep_hash, const ParetoReport& report) {
    Json json;
    json["millrace_pareto"] = document_version;
    json["name"] = sweep.name;
    json["description"] = sweep.description;
    json["sweep_hash"] = sweep_hash;
    json["confidence"] = report.confidence;
    json["looks"] = report.looks;
    json["incomplete_designs"] = incomplete_designs(report);
    json["objectives"] = Json::array();
    for (const SweepObjective& objective : sweep.objectives) {
        json["objectives"].push_back(
            {{"metric", objective.metric}, {"goal", objective.minimize ? "minimize" : "maximize"}});
    }
    json["reference_point"] = report.reference;
    json["hypervolume"] = hypervolume_json(report.hypervolume);
    json["families"] = Json::array();
    json["family_hypervolumes"] = Json::object();
    for (const auto& [family, volume] : report.families) {
        json["families"].push_back(family);
        json["family_hypervolumes"][family] = hypervolume_json(volume);
    }
    json["designs"] = Json::array();
    for (std::size_t i = 0; i < sweep.designs.size(); ++i) {
        json["designs"].push_back(design_json(sweep.designs[i], report.designs[i]));
    }
    json["refinement"] = refinement_json(sweep, report.refinement);
    return json.dump(2) + "\n";
}

std::string pareto_csv(const Sweep& sweep, const ParetoReport& report) {
    const auto axes = union_of(sweep.designs, [](const Design& design) { return design.values; });
    auto metrics = union_of(report.designs, [](const ParetoDesign& design) { return design.metrics; });
    std::sort(metrics.begin(), metrics.end());
    std::string text = "design,family,refined";
    for (const std::string& axis : axes) {
        text += "," + csv_cell(axis);
    }
    text += ",replications,membership,on_front,error";
    for (const std::string& metric : metrics) {
        text += "," + csv_cell(metric) + "," + csv_cell(metric + ":half_width");
    }
    text += "\n";
    for (std::size_t i = 0; i < sweep.designs.size(); ++i) {
        const Design& design = sweep.designs[i];
        const ParetoDesign& result = report.designs[i];
        text += design.id + "," + csv_cell(design.family) + (design.refined ? ",true" : ",false");
        for (const std::string& axis : axes) {
            const auto value = std::find_if(design.values.begin(), design.values.end(),
                                            [&](const auto& entry) { return entry.first == axis; });
            std::string cell;
            if (value != design.values.end()) {
                const Json json = Json::parse(value->second);
                cell = json.is_string() ? json.get<std::string>() : value->second;
            }
            text += "," + csv_cell(cell);
        }
        const bool decided = result.error.empty();
        text += "," + std::to_string(result.replications) + "," +
                (decided ? membership_name(result.decision.membership) : "") + "," +
                (decided ? (result.decision.leads_by_means ? "true" : "false") : "") + "," + csv_cell(result.error);
        for (const std::string& metric : metrics) {
            const auto found = result.metrics.find(metric);
            const bool known = found != result.metrics.end();
            text += "," + (known ? Json(found->second.mean).dump() : "") + "," +
                    (known && found->second.half_width ? Json(*found->second.half_width).dump() : "");
        }
        text += "\n";
    }
    return text;
}

}  // namespace millrace
