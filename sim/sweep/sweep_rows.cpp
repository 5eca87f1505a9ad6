#include "sim/sweep/sweep_rows.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "sim/scenario/diagnostics.h"
#include "sim/scenario/json_document.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

/// Where each fault is found: the column in the line, which is source 0 from its first byte.
int column_of(const JsonNode& node) {
    return static_cast<int>(node.value_place.offset) + 1;
}

std::string check_text(const std::string& text, const std::string& what) {
    if (text.empty() || text.find('\n') != std::string::npos) {
        return what + " has to be one line of text";
    }
    return "";
}

/// What is wrong with a row, or nothing: the same rules for rows that are written and rows that are read.
std::string fault(const BlockRow& row) {
    if (!is_design_id(row.design)) {
        return "design: expected 16 hexadecimal digits, found \"" + row.design + "\"";
    }
    if (row.first_replication < 0) {
        return "first_replication: expected a whole number of at least 0";
    }
    if (row.replications < 1) {
        return "replications: expected a whole number of at least 1";
    }
    if (row.warmup_updates < 0) {
        return "warmup_updates: expected a whole number of at least 0";
    }
    for (const auto& [key, values] : row.metrics) {
        if (values.size() != static_cast<std::size_t>(row.replications)) {
            return "metrics: " + key + " has " + std::to_string(values.size()) + " values for " +
                   std::to_string(row.replications) + " replications";
        }
        for (const std::optional<double>& value : values) {
            if (value && !std::isfinite(*value)) {
                return "metrics: " + key + " has a value that is not a finite number";
            }
        }
    }
    for (const auto& [key, reason] : row.undefined) {
        if (std::string wrong = check_text(reason, "undefined: the reason of " + key); !wrong.empty()) {
            return wrong;
        }
    }
    if (!row.error.empty()) {
        if (!row.metrics.empty() || !row.undefined.empty()) {
            return "error: a block that failed has no metrics";
        }
        return check_text(row.error, "error");
    }
    return "";
}

/// Takes the members of the row's object one by one; what is left in the end is unknown.
class Members {
   public:
    explicit Members(const JsonNode& object) : object_(object), taken_(object.children.size(), false) {}

    const JsonNode* take_if_there(std::string_view name, JsonNode::Kind kind, const char* kind_name) {
        for (std::size_t i = 0; i < object_.children.size(); ++i) {
            const JsonNode& member = object_.children[i];
            if (member.key == name) {
                if (member.kind != kind) {
                    throw RowError(std::string(name) + ": expected " + kind_name + ", found " + describe_value(member),
                                   column_of(member));
                }
                taken_[i] = true;
                return &member;
            }
        }
        return nullptr;
    }

    const JsonNode& take(std::string_view name, JsonNode::Kind kind, const char* kind_name) {
        const JsonNode* member = take_if_there(name, kind, kind_name);
        if (member == nullptr) {
            throw RowError("the key \"" + std::string(name) + "\" is missing", 1);
        }
        return *member;
    }

    void refuse_the_rest() const {
        for (std::size_t i = 0; i < taken_.size(); ++i) {
            if (!taken_[i]) {
                throw RowError("there is no key \"" + object_.children[i].key + "\" in a row of this kind",
                               static_cast<int>(object_.children[i].key_place.offset) + 1);
            }
        }
    }

   private:
    const JsonNode& object_;
    std::vector<bool> taken_;
};

std::vector<std::optional<double>> values_of(const JsonNode& array) {
    if (array.kind != JsonNode::Kind::array) {
        throw RowError("metrics: expected a list for " + array.key + ", found " + describe_value(array),
                       column_of(array));
    }
    std::vector<std::optional<double>> values;
    values.reserve(array.children.size());
    for (const JsonNode& value : array.children) {
        if (value.kind == JsonNode::Kind::null) {
            values.emplace_back();
        } else if (value.is_number()) {
            values.emplace_back(value.real);
        } else {
            throw RowError("metrics: " + array.key + " holds " + describe_value(value) + ", expected numbers or null",
                           column_of(value));
        }
    }
    return values;
}

JsonNode parse_line(std::string_view line) {
    Diagnostics diagnostics("row", std::string(line), {});
    JsonNode root;
    try {
        parse_json(root, 0, 0, diagnostics);
        diagnostics.throw_if_any();
    } catch (const ScenarioError& error) {
        const ScenarioProblem& problem = error.problems().front();
        throw RowError((problem.key.empty() ? "" : problem.key + ": ") + problem.message, problem.column);
    }
    if (root.kind != JsonNode::Kind::object) {
        throw RowError("expected an object, found " + describe_value(root), column_of(root));
    }
    return root;
}

[[noreturn]] void refuse_line(const std::string& file_name, std::size_t line, int column, const std::string& what) {
    ScenarioProblem problem;
    problem.source = file_name;
    problem.line = static_cast<int>(line);
    problem.column = column;
    problem.message = what;
    problem.rendered = file_name + ":" + std::to_string(line) + ":" + std::to_string(column) + ": error: " + what;
    throw ScenarioError({problem});
}

}  // namespace

bool is_design_id(std::string_view text) {
    return text.size() == 16 && std::all_of(text.begin(), text.end(),
                                            [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string block_row_json(const BlockRow& row) {
    if (const std::string wrong = fault(row); !wrong.empty()) {
        throw std::logic_error("a row of a sweep cannot be written: " + wrong);
    }
    Json json;
    json["design"] = row.design;
    json["first_replication"] = row.first_replication;
    json["replications"] = row.replications;
    if (!row.error.empty()) {
        json["error"] = row.error;
        return json.dump();
    }
    json["warmup_updates"] = row.warmup_updates;
    json["metrics"] = Json::object();
    for (const auto& [key, values] : row.metrics) {
        Json& list = json["metrics"][key] = Json::array();
        for (const std::optional<double>& value : values) {
            list.push_back(value ? Json(*value) : Json());
        }
    }
    json["undefined"] = row.undefined.empty() ? Json::object() : Json(row.undefined);
    return json.dump();
}

BlockRow parse_block_row(std::string_view line) {
    if (!line.empty() && line.back() == '\n') {
        line.remove_suffix(1);
    }
    const JsonNode root = parse_line(line);
    Members members(root);
    BlockRow row;
    row.design = members.take("design", JsonNode::Kind::string, "text").string;
    row.first_replication = members.take("first_replication", JsonNode::Kind::integer, "a whole number").integer;
    row.replications = members.take("replications", JsonNode::Kind::integer, "a whole number").integer;
    if (const JsonNode* error = members.take_if_there("error", JsonNode::Kind::string, "text")) {
        row.error = error->string;
        if (const std::string wrong = check_text(row.error, "error"); !wrong.empty()) {
            throw RowError(wrong, column_of(*error));
        }
    } else {
        row.warmup_updates = members.take("warmup_updates", JsonNode::Kind::integer, "a whole number").integer;
        for (const JsonNode& metric : members.take("metrics", JsonNode::Kind::object, "an object").children) {
            row.metrics[metric.key] = values_of(metric);
        }
        for (const JsonNode& metric : members.take("undefined", JsonNode::Kind::object, "an object").children) {
            if (metric.kind != JsonNode::Kind::string) {
                throw RowError("undefined: expected text for " + metric.key + ", found " + describe_value(metric),
                               column_of(metric));
            }
            row.undefined[metric.key] = metric.string;
        }
    }
    members.refuse_the_rest();
    if (const std::string wrong = fault(row); !wrong.empty()) {
        throw RowError(wrong, 1);
    }
    return row;
}

BlockRows read_block_rows(std::string_view text, const std::string& file_name, TornLine torn) {
    BlockRows result;
    std::size_t line = 1;
    for (std::size_t begin = 0; begin < text.size(); ++line) {
        const std::size_t end = text.find('\n', begin);
        if (end == std::string_view::npos) {
            if (torn == TornLine::is_an_error) {
                refuse_line(file_name, line, 1, "the last line has no end: the file was cut off while it was written");
            }
            break;
        }
        try {
            result.rows.push_back(parse_block_row(text.substr(begin, end - begin)));
        } catch (const RowError& error) {
            refuse_line(file_name, line, error.column, error.what());
        }
        begin = result.whole_bytes = end + 1;
    }
    return result;
}

}  // namespace millrace
