#include "sim/scenario/object_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace millrace {
namespace {

constexpr std::string_view not_supported = "not supported by this version";

std::string quoted(std::string_view name) {
    return "\"" + std::string(name) + "\"";
}

/// `"a", "b" or "c"`
std::string alternatives(const std::vector<std::string_view>& names) {
    std::string list;
    for (std::size_t i = 0; i < names.size(); ++i) {
        list += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
        list += quoted(names[i]);
    }
    return list;
}

std::string range_text(const RealRange& range) {
    if (range.low_excluded && range.low == 0.0 && range.high == std::numeric_limits<double>::max()) {
        return "a positive number";
    }
    std::string text = range.low_excluded ? "a number above " : "a number of at least ";
    text += number_text(range.low);
    if (range.high < std::numeric_limits<double>::max()) {
        text += range.high_excluded ? " and below " : " and at most ";
        text += number_text(range.high);
    }
    return text;
}

std::vector<std::string_view> key_names(const ObjectShape& shape) {
    std::vector<std::string_view> names;
    for (const KeyRule& key : shape.keys) {
        names.push_back(key.name);
    }
    return names;
}

}  // namespace

// ---- shape --------------------------------------------------------------------------------------------------------

ObjectReader::ObjectReader(const JsonNode& node, std::string path, std::string_view shape_path,
                           Diagnostics& diagnostics, const Vocabulary& vocabulary)
    : ObjectReader(node, std::move(path), diagnostics, vocabulary) {
    if (node.kind != JsonNode::Kind::object) {
        report_mismatch(node, path_, "an object", diagnostics);
        return;
    }
    check_keys(*vocabulary.find_shape(shape_path, ""));
}

ObjectReader ObjectReader::with_kind(const JsonNode& node, std::string path, std::string_view shape_path,
                                     Diagnostics& diagnostics, std::vector<std::string_view> future,
                                     const Vocabulary& vocabulary) {
    ObjectReader reader(node, std::move(path), diagnostics, vocabulary);
    const std::vector<std::string_view> kinds = vocabulary.kinds_of(shape_path);
    if (node.kind != JsonNode::Kind::object) {
        const std::string expected =
            shape_path == "law" ? "a number or a law (an object with \"kind\")" : "an object with \"kind\"";
        report_mismatch(node, reader.path_, expected, diagnostics);
    } else if (node.find("kind") == nullptr) {
        // A misspelt "kind" is the likely reason, and the other keys cannot be judged without it.
        std::string misspelt;
        for (const JsonNode& member : node.children) {
            const bool known = std::any_of(kinds.begin(), kinds.end(), [&](std::string_view kind) {
                const std::vector<std::string_view> names = key_names(*vocabulary.find_shape(shape_path, kind));
                return std::find(names.begin(), names.end(), member.key) != names.end();
            });
            if (!known && !nearest_name(member.key, std::array<std::string_view, 1>{"kind"}).empty()) {
                misspelt = member.key;
                diagnostics.report(member.key_place, reader.path_to(member.key), "unknown key", "", "kind",
                                   FaultKind::of_object);
            }
        }
        if (misspelt.empty()) {
            reader.report("kind", "missing: expected " + alternatives(kinds));
        }
    } else {
        const std::size_t faults_before = diagnostics.count();
        const std::size_t chosen = reader.choice_index("kind", kinds, future);
        if (diagnostics.count() == faults_before) {
            reader.kind_ = kinds[chosen];
            reader.check_keys(*vocabulary.find_shape(shape_path, reader.kind_));
        }
    }
    return reader;
}

void ObjectReader::check_keys(const ObjectShape& shape) {
    const std::vector<std::string_view> names = key_names(shape);
    std::vector<std::string> meant;
    for (const JsonNode& member : node_.children) {
        if (std::find(names.begin(), names.end(), member.key) == names.end()) {
            meant.push_back(report_unknown_key(member, shape));
        }
    }
    for (const KeyRule& key : shape.keys) {
        // A key that is there but misspelt has been reported already.
        const bool misspelt = std::find(meant.begin(), meant.end(), key.name) != meant.end();
        if (key.presence == KeyRule::Presence::required && node_.find(key.name) == nullptr && !misspelt) {
            report(key.name, "missing: this key is required");
        }
    }
}

std::string ObjectReader::report_unknown_key(const JsonNode& member, const ObjectShape& shape) const {
    const auto say = [&](std::string message, std::string hint = "", std::string suggestion = "") {
        diagnostics_->report(member.key_place, path_to(member.key), std::move(message), std::move(hint), suggestion,
                             FaultKind::of_object);
        return suggestion;
    };
    if (const ForeignKey* foreign = vocabulary_->find_foreign(shape.path, member.key)) {
        return say(std::string(foreign->message), std::string(foreign->hint), std::string(foreign->suggestion));
    }
    const std::string message = shape.kind.empty() ? "unknown key" : "unknown key for the kind " + quoted(shape.kind);
    for (const std::string_view kind : vocabulary_->kinds_of(shape.path)) {
        const std::vector<std::string_view> names = key_names(*vocabulary_->find_shape(shape.path, kind));
        if (std::find(names.begin(), names.end(), member.key) != names.end()) {
            return say(message, quoted(member.key) + " is a key of the kind " + quoted(kind));
        }
    }
    // Keys that are already there are not what was meant.
    std::vector<std::string_view> names = key_names(shape);
    std::erase_if(names, [&](std::string_view name) { return node_.find(name) != nullptr; });
    std::string nearest = nearest_name(member.key, names);
    if (nearest.empty()) {
        nearest = nearest_name(member.key, key_names(shape));
    }
    if (!nearest.empty()) {
        return say(message, "", nearest);
    }
    const std::vector<std::string> homes = vocabulary_->homes_of(member.key, shape.path);
    if (!homes.empty()) {
        std::string where;
        for (const std::string& home : homes) {
            where += (where.empty() ? "" : " or ") + quoted(home);
        }
        return say(message, "did you mean " + where + "?", homes.front());
    }
    std::string list;
    for (const std::string_view name : key_names(shape)) {
        list += (list.empty() ? "" : ", ") + std::string(name);
    }
    return say(message, "the keys here are " + list);
}

// ---- values -------------------------------------------------------------------------------------------------------

std::string ObjectReader::path_to(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void ObjectReader::report(std::string_view key, std::string message, std::string hint, std::string suggestion) const {
    const JsonNode* member = find(key);
    const bool is_root = path_.empty();
    const Place place = member != nullptr ? member->value_place : is_root ? node_.value_place : node_.key_place;
    diagnostics_->report(place, path_to(key), std::move(message), std::move(hint), std::move(suggestion));
}

std::int64_t ObjectReader::whole(std::string_view key, std::int64_t low, std::int64_t high) const {
    const JsonNode* member = find(key);
    if (member == nullptr) {
        return low;
    }
    const bool is_whole = member->kind == JsonNode::Kind::integer;
    if (is_whole && member->integer >= low && member->integer <= high) {
        return member->integer;
    }
    const bool too_large = is_whole && member->integer > high;
    report_mismatch(
        *member, path_to(key),
        "a whole number of at " + (too_large ? "most " + std::to_string(high) : "least " + std::to_string(low)),
        *diagnostics_);
    return low;
}

double ObjectReader::real(std::string_view key, RealRange range) const {
    const JsonNode* member = find(key);
    return member == nullptr ? range.low : read_real(*member, path_to(key), range, *diagnostics_);
}

bool ObjectReader::boolean(std::string_view key) const {
    const JsonNode* member = find(key);
    if (member != nullptr && member->kind != JsonNode::Kind::boolean) {
        report_mismatch(*member, path_to(key), "true or false", *diagnostics_);
    }
    return member != nullptr && member->boolean;
}

std::string ObjectReader::text(std::string_view key) const {
    const JsonNode* member = find(key);
    if (member != nullptr && member->kind != JsonNode::Kind::string) {
        report_mismatch(*member, path_to(key), "a string", *diagnostics_);
    }
    return member == nullptr ? "" : member->string;
}

std::size_t ObjectReader::choice_index(std::string_view key, const std::vector<std::string_view>& names,
                                       const std::vector<std::string_view>& future) const {
    const JsonNode* member = find(key);
    if (member == nullptr) {
        return 0;
    }
    if (member->kind != JsonNode::Kind::string) {
        report_mismatch(*member, path_to(key), alternatives(names), *diagnostics_);
        return 0;
    }
    const auto found = std::find(names.begin(), names.end(), member->string);
    if (found != names.end()) {
        return static_cast<std::size_t>(found - names.begin());
    }
    if (std::find(future.begin(), future.end(), member->string) != future.end()) {
        report(key, quoted(member->string) + " is " + std::string(not_supported), "it has " + alternatives(names));
        return 0;
    }
    diagnostics_->report(member->value_place, path_to(key),
                         "expected " + alternatives(names) + ", found " + describe_value(*member), "",
                         nearest_name(member->string, names), FaultKind::of_value);
    return 0;
}

double read_real(const JsonNode& node, const std::string& path, RealRange range, Diagnostics& diagnostics) {
    const bool above = range.low_excluded ? node.real > range.low : node.real >= range.low;
    const bool below = range.high_excluded ? node.real < range.high : node.real <= range.high;
    if (node.is_number() && above && below) {
        return node.real;
    }
    report_mismatch(node, path, range_text(range), diagnostics);
    return range.low;
}

void report_mismatch(const JsonNode& node, const std::string& path, const std::string& expected,
                     Diagnostics& diagnostics) {
    const bool wants_whole = expected.starts_with("a whole number");
    const bool wants_number = wants_whole || expected.starts_with("a number") || expected.starts_with("a positive");
    std::string hint;
    if (wants_whole && node.kind == JsonNode::Kind::real && node.real == std::floor(node.real) &&
        std::abs(node.real) <= static_cast<double>(largest_json_integer)) {
        hint = "write " + std::to_string(static_cast<std::int64_t>(node.real));
    } else if (node.kind == JsonNode::Kind::null) {
        hint = "a key that is not wanted is left out";
    } else if (node.kind == JsonNode::Kind::string && node.value_place.source > 0 && !expected.starts_with('"')) {
        hint = "a --set value that is not valid JSON is taken as a string";
    } else if (node.kind == JsonNode::Kind::string && wants_number) {
        hint = "numbers stand without quotes";
    } else if (expected == "a string" && node.value_place.source > 0) {
        hint = "in a --set value, quotes make a string: '" + path + "=\"...\"'";
    }
    diagnostics.report(node.value_place, path, "expected " + expected + ", found " + describe_value(node), hint, "",
                       FaultKind::of_value);
}

std::string number_text(double value) {
    JsonNode node;
    node.kind = JsonNode::Kind::real;
    node.real = value;
    return canonical_json(node);
}

}  // namespace millrace
