#include "sim/sweep/sweep_family.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/scenario/decode.h"
#include "sim/scenario/input_file.h"
#include "sim/scenario/object_reader.h"
#include "sim/sweep/sweep_vocabulary.h"

namespace millrace {

std::optional<std::string> Family::set_value(const std::string& path) const {
    for (const Change& change : set) {
        if (change.text.starts_with(path + "=")) {
            return change.text.substr(path.size() + 1);
        }
    }
    return std::nullopt;
}

bool Family::has_axis(const std::string& path) const {
    return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
        return std::any_of(axis.columns.begin(), axis.columns.end(),
                           [&](const AxisColumn& column) { return column.path == path; });
    });
}

nlohmann::json Family::resolved() const {
    using nlohmann::json;
    const auto column_json = [](const AxisColumn& column) {
        json values = json::array();
        for (const std::string& value : column.values) {
            values.push_back(json::parse(value));
        }
        return json{{"path", column.path}, {"values", values}};
    };
    json document = {{"name", name}, {"base", json::parse(base)}};
    if (!base_file.empty()) {
        document["base_file"] = base_file;
    }
    document["set"] = json::object();
    for (const Change& change : set) {
        const std::size_t equals = change.text.find('=');
        document["set"][change.text.substr(0, equals)] = json::parse(change.text.substr(equals + 1));
    }
    document["axes"] = json::array();
    for (const Axis& axis : axes) {
        if (axis.columns.size() == 1) {
            document["axes"].push_back(column_json(axis.columns.front()));
            continue;
        }
        json zip = json::array();
        for (const AxisColumn& column : axis.columns) {
            zip.push_back(column_json(column));
        }
        document["axes"].push_back({{"zip", zip}});
    }
    document["constraints"] = json::array();
    for (const Condition& condition : constraints) {
        document["constraints"].push_back(condition.text);
    }
    return document;
}

void check_name(const ObjectReader& reader, const std::string& name) {
    const JsonNode* node = reader.find("name");
    if (node == nullptr || node->kind != JsonNode::Kind::string) {
        return;  // reported
    }
    if (name.empty()) {
        reader.report("name", "expected a name, found an empty string");
    }
    for (std::size_t i = 0; i < name.size(); ++i) {
        const auto byte = static_cast<unsigned char>(name[i]);
        const bool c1 = byte == 0xC2 && i + 1 < name.size() && static_cast<unsigned char>(name[i + 1]) < 0xA0;
        if (byte < 0x20 || byte == 0x7F || c1) {
            return reader.report("name", "a name is one line without control characters",
                                 "tables and figures print it as it is");
        }
    }
}

std::optional<Family> FamilyReader::read(const JsonNode& node, const std::string& key) {
    const std::size_t faults_before = diagnostics_.count();
    const ObjectReader reader(node, key, "families", diagnostics_, sweep_vocabulary());
    if (node.kind != JsonNode::Kind::object) {
        return std::nullopt;
    }
    Family family;
    family.key = key;
    family.name = reader.text("name");
    check_name(reader, family.name);
    const bool has_base = read_base(node, family);
    if (const JsonNode* set = node.find("set")) {
        read_set(*set, reader.path_to("set"), family);
    }
    if (const JsonNode* axes = node.find("axes")) {
        family.axes = read_axes(*axes, reader.path_to("axes"), diagnostics_);
    }
    for (const Axis& axis : family.axes) {
        for (const AxisColumn& column : axis.columns) {
            for (const Change& change : family.set) {
                if (lies_in(std::string_view(change.text).substr(0, change.text.find('=')), column.path)) {
                    diagnostics_.report(change.place, change.key,
                                        "an axis gives this its values, at " + diagnostics_.describe(column.path_place),
                                        "remove one of the two");
                }
            }
        }
    }
    if (const JsonNode* constraints = node.find("constraints")) {
        read_constraints(*constraints, reader.path_to("constraints"), family);
    }
    return has_base && diagnostics_.count() == faults_before ? std::optional(std::move(family)) : std::nullopt;
}

bool FamilyReader::read_base(const JsonNode& node, Family& family) {
    const JsonNode* base = node.find("base");
    const JsonNode* base_file = node.find("base_file");
    if (base == nullptr) {
        return false;  // reported as missing
    }
    family.base_place = base->value_place;
    if (base->kind == JsonNode::Kind::object) {
        if (base_file != nullptr && base_file->kind != JsonNode::Kind::string) {
            report_mismatch(*base_file, family.key + ".base_file", "a string", diagnostics_);
        } else if (base_file != nullptr) {
            family.base_file = base_file->string;
        }
        return read_base_object(*base, family);
    }
    if (base->kind != JsonNode::Kind::string || base->string.empty()) {
        report_mismatch(*base, family.key + ".base", "the path of a scenario file", diagnostics_);
        return false;
    }
    if (base_file != nullptr) {
        diagnostics_.report(base_file->key_place, family.key + ".base_file", "beside a \"base\" that is a file itself");
        return false;
    }
    return read_base_file(*base, family);
}

bool FamilyReader::read_base_file(const JsonNode& node, Family& family) {
    if (!folder_) {
        diagnostics_.report(node.value_place, family.key + ".base",
                            "expected the scenario itself: a resolved sweep reads no other file");
        return false;
    }
    family.base_file = node.string;
    const std::string file = (std::filesystem::path(*folder_) / node.string).string();
    auto known = bases_.find(file);
    if (known == bases_.end()) {
        known = bases_.emplace(file, std::nullopt).first;
        std::string text;
        try {
            text = read_input_file(file);
        } catch (const ScenarioError& error) {
            diagnostics_.report(node.value_place, family.key + ".base", file + " " + error.problems().front().message,
                                "the path of a base scenario is relative to the sweep file");
            return false;
        }
        try {
            const std::uint64_t seed = decode_scenario(text, file, {}).seed;
            Diagnostics none = diagnostics_of(text, file, {});
            known->second = std::pair(resolved_json(parse_input(none, scenario_vocabulary())), seed);
        } catch (const ScenarioError& error) {
            file_problems_.insert(file_problems_.end(), error.problems().begin(), error.problems().end());
        }
    }
    if (known->second) {
        std::tie(family.base, family.base_seed) = *known->second;
    }
    return known->second.has_value();
}

bool FamilyReader::read_base_object(const JsonNode& node, Family& family) {
    family.base = resolved_json(node);
    try {
        family.base_seed = decode_scenario(family.base, "base", {}).seed;
        return true;
    } catch (const ScenarioError& error) {
        for (const ScenarioProblem& problem : error.problems()) {
            // Of a key that is missing or unknown, the object or the key.
            const std::size_t dot = problem.key.rfind('.');
            const JsonNode* at = find_path(node, problem.key);
            const bool unknown = at != nullptr && problem.message.starts_with("unknown key");
            if (at == nullptr) {
                at = find_path(node, dot == std::string::npos ? "" : problem.key.substr(0, dot));
            }
            diagnostics_.report(at == nullptr ? node.value_place
                                : unknown     ? at->key_place
                                              : at->value_place,
                                family.key + ".base." + problem.key, problem.message, problem.hint, problem.suggestion);
        }
        return false;
    }
}

void FamilyReader::read_set(const JsonNode& node, const std::string& key, Family& family) {
    if (node.kind != JsonNode::Kind::object) {
        return report_mismatch(node, key, "an object of dotted paths and their values", diagnostics_);
    }
    for (const JsonNode& member : node.children) {
        const std::string here = key + "." + member.key;
        if (check_path(member.key, member.key_place, here, diagnostics_)) {
            family.set.push_back({member.key + "=" + canonical_json(member), member.value_place, here});
        }
    }
    std::sort(family.set.begin(), family.set.end(), [](const Change& a, const Change& b) { return a.key < b.key; });
}

void FamilyReader::read_constraints(const JsonNode& node, const std::string& key, Family& family) {
    family.constraints_place = node.value_place;
    if (node.kind != JsonNode::Kind::array) {
        return report_mismatch(node, key, "a list of constraints", diagnostics_);
    }
    for (std::size_t i = 0; i < node.children.size(); ++i) {
        const JsonNode& element = node.children[i];
        const std::string here = key + "." + std::to_string(i);
        if (element.kind != JsonNode::Kind::string) {
            report_mismatch(element, here, "a string", diagnostics_);
            continue;
        }
        try {
            family.constraints.push_back({element.string, element.value_place, Constraint(element.string)});
        } catch (const ConstraintError& error) {
            diagnostics_.report(place_in_string(diagnostics_, element.value_place, error.offset), here, error.what(),
                                error.hint, error.suggestion);
        }
    }
}

}  // namespace millrace
