#include "sim/scenario/overrides.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace millrace {
namespace {

std::optional<std::size_t> parse_index(std::string_view digits) {
    std::size_t index = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, fault] = std::from_chars(digits.data(), end, index);
    return fault == std::errc{} && stop == end ? std::optional(index) : std::nullopt;
}

JsonNode parse_value(int source, std::size_t begin, std::string_view path, Diagnostics& diagnostics) {
    JsonNode value;
    Diagnostics trial = diagnostics;
    if (parse_json(value, source, begin, trial, path)) {
        diagnostics = std::move(trial);  // keeps lesser faults, such as a duplicate key
        return value;
    }
    JsonNode text;
    text.kind = JsonNode::Kind::string;
    text.string = diagnostics.text(source).substr(begin);
    text.value_place = {source, begin};
    return text;
}

}  // namespace

void apply_override(JsonNode& root, int source, Diagnostics& diagnostics) {
    const std::string argument = diagnostics.text(source);
    const std::size_t equals = argument.find('=');
    if (!is_valid_utf8(argument)) {
        return diagnostics.report({source, 0}, "", "this --set argument is not valid UTF-8");
    }
    if (equals == std::string::npos) {
        return diagnostics.report({source, argument.size()}, "", "expected path=value, found no '='",
                                  "for example --set trainers.batch=64");
    }
    if (equals == 0) {
        return diagnostics.report({source, 0}, "", "expected a path before '='", "for example --set trainers.batch=64");
    }
    const std::string_view path = std::string_view(argument).substr(0, equals);
    JsonNode* node = &root;
    std::size_t begin = 0;
    while (begin <= path.size()) {
        const std::size_t end = std::min(path.find('.', begin), path.size());
        const std::string step(path.substr(begin, end - begin));
        const std::string container = begin == 0 ? "the scenario" : std::string(path.substr(0, begin - 1));
        const Place place{source, begin};
        if (step.empty()) {
            return diagnostics.report(place, "", "the path \"" + std::string(path) + "\" has an empty step",
                                      "steps are separated by single dots");
        }
        const std::string here(path.substr(0, end));
        if (node->kind == JsonNode::Kind::array) {
            const std::optional<std::size_t> index = parse_index(step);
            const std::size_t size = node->children.size();
            if (!index || *index >= size) {
                const std::string hint = size == 0 ? ""
                                                   : "its elements are " + std::string(size == 1 ? "0" : "0 to ") +
                                                         (size == 1 ? "" : std::to_string(size - 1)) + " only";
                return diagnostics.report(
                    place, here,
                    container + " is a list of " + std::to_string(size) + ", which has no element \"" + step + "\"",
                    size == 0 ? "set the whole list: " + container + "=[...]" : hint);
            }
            node = &node->children[*index];
        } else if (node->kind == JsonNode::Kind::object) {
            JsonNode* member = node->find(step);
            if (member == nullptr) {
                member = &node->children.emplace_back();
                member->kind = JsonNode::Kind::object;
                member->key = step;
                member->key_place = place;
                member->value_place = place;
            }
            node = member;
        } else {
            return diagnostics.report(
                place, here, container + " is " + describe_value(*node) + ", which has no member \"" + step + "\"",
                "set it as a whole: " + container + "={...}");
        }
        begin = end + 1;
    }
    JsonNode value = parse_value(source, equals + 1, path, diagnostics);
    value.key = node->key;
    const std::size_t last_step = path.rfind('.') == std::string_view::npos ? 0 : path.rfind('.') + 1;
    value.key_place = {source, last_step};
    *node = std::move(value);
}

}  // namespace millrace
