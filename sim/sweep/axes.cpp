#include "sim/sweep/axes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "sim/engine/portable_math.h"
#include "sim/scenario/object_reader.h"
#include "sim/sweep/sweep_vocabulary.h"

namespace millrace {
namespace {

/// digits x 10^exponent
struct Decimal {
    std::int64_t digits = 0;
    int exponent = 0;
};

double parse_number(const char* begin, const char* end) {
    double value = 0.0;
    std::from_chars(begin, end, value);
    return value;
}

/// The shortest decimal that reads as this double.
Decimal decimal(double value) {
    std::string digits(40, '0');
    digits.resize(static_cast<std::size_t>(
        std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::scientific).ptr -
        digits.data()));
    const std::size_t e = digits.find('e');
    const std::string exponent = digits.substr(e + (digits[e + 1] == '+' ? 2 : 1));
    digits.resize(e);
    Decimal result;
    const std::size_t point = digits.find('.');
    const std::size_t fraction = point == std::string::npos ? 0 : digits.size() - point - 1;
    std::erase(digits, '.');
    std::from_chars(digits.data(), digits.data() + digits.size(), result.digits);
    std::from_chars(exponent.data(), exponent.data() + exponent.size(), result.exponent);
    result.exponent -= static_cast<int>(fraction);
    return result;
}

/// The digits at a smaller exponent, or none when there are too many of them.
std::optional<std::int64_t> digits_at(Decimal number, int exponent) {
    constexpr std::int64_t most = 1'000'000'000'000'000;
    if (number.digits == 0) {
        return 0;
    }
    for (; number.exponent > exponent; --number.exponent) {
        if (std::abs(number.digits) >= most / 10) {
            return std::nullopt;
        }
        number.digits *= 10;
    }
    return std::abs(number.digits) < most ? std::optional(number.digits) : std::nullopt;
}

bool is_whole(double value) {
    return value == std::floor(value) && std::abs(value) <= static_cast<double>(largest_json_integer);
}

double round_to_digits(double value, int digits) {
    char text[40];
    const auto [end, fault] = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, digits - 1);
    return parse_number(text, end);
}

class AxesReader {
   public:
    explicit AxesReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

    std::optional<Axis> read(const JsonNode& node, const std::string& path) {
        const std::size_t faults_before = diagnostics_.count();
        const ObjectReader reader(node, path, "families.axes", diagnostics_, sweep_vocabulary());
        if (node.kind != JsonNode::Kind::object) {
            return std::nullopt;
        }
        Axis axis;
        const JsonNode* zip = node.find("zip");
        if (zip == nullptr) {
            const bool keys_are_known = diagnostics_.count() == faults_before;
            if (node.find("path") == nullptr && keys_are_known) {
                reader.report("path",
                              "missing: expected the \"path\" of the scenario that the axis changes, or \"zip\"");
            }
            axis.columns.push_back(read_column(reader, node, false, keys_are_known));
        } else {
            for (const char* const other : {"path", "values", "range", "log_range"}) {
                if (const JsonNode* member = node.find(other)) {
                    diagnostics_.report(member->key_place, reader.path_to(other),
                                        "beside \"zip\", whose elements have their own paths and values");
                }
            }
            read_zip(*zip, reader.path_to("zip"), axis);
        }
        return diagnostics_.count() == faults_before ? std::optional(axis) : std::nullopt;
    }

   private:
    void read_zip(const JsonNode& list, const std::string& path, Axis& axis) {
        if (list.kind != JsonNode::Kind::array || list.children.size() < 2) {
            report_mismatch(list, path, "a list of at least two axes that go together", diagnostics_);
            return;
        }
        for (std::size_t i = 0; i < list.children.size(); ++i) {
            const std::size_t faults_before = diagnostics_.count();
            const JsonNode& element = list.children[i];
            const ObjectReader reader(element, path + "." + std::to_string(i), "families.axes.zip", diagnostics_,
                                      sweep_vocabulary());
            if (element.kind != JsonNode::Kind::object) {
                continue;
            }
            AxisColumn column = read_column(reader, element, true, diagnostics_.count() == faults_before);
            if (diagnostics_.count() > faults_before) {
                continue;
            }
            if (!axis.columns.empty() && column.values.size() != axis.size()) {
                diagnostics_.report(element.value_place, reader.path(),
                                    "has " + std::to_string(column.values.size()) + " values, and " +
                                        axis.columns.front().path + " has " + std::to_string(axis.size()),
                                    "the axes of a zip go together value by value");
            }
            axis.columns.push_back(std::move(column));
        }
    }

    /// The path and the values, stated in one of the three ways.
    /// In a zip a value may repeat, for the other columns tell the rows apart. Where an unknown key has been reported,
    /// it is probably the one that is missing.
    AxisColumn read_column(const ObjectReader& reader, const JsonNode& node, bool in_zip, bool keys_are_known) {
        AxisColumn column;
        column.path = reader.text("path");
        if (const JsonNode* member = node.find("path"); member != nullptr && member->kind == JsonNode::Kind::string) {
            column.path_place = member->value_place;
            check_path(column.path, member->value_place, reader.path_to("path"), diagnostics_);
        }
        std::vector<const JsonNode*> given;
        for (const char* const way : {"values", "range", "log_range"}) {
            if (const JsonNode* member = node.find(way)) {
                given.push_back(member);
            }
        }
        if (given.empty()) {
            if (keys_are_known) {
                reader.report("values", R"(missing: expected "values", "range" or "log_range")");
            }
            return column;
        }
        if (given.size() > 1) {
            diagnostics_.report(given[1]->key_place, reader.path_to(given[1]->key),
                                "beside \"" + given[0]->key + "\": an axis states its values in one way");
            return column;
        }
        const JsonNode& values = *given.front();
        const std::string path = reader.path_to(values.key);
        if (values.key == "values") {
            read_values(values, path, in_zip, column);
        } else {
            const std::vector<double> numbers =
                values.key == "range" ? read_range(values, path) : read_log_range(values, path);
            for (const double number : numbers) {
                column.values.push_back(number_text(number));
            }
            column.value_places.assign(numbers.size(), values.value_place);
            column.value_keys.assign(numbers.size(), path);
        }
        return column;
    }

    void read_values(const JsonNode& list, const std::string& path, bool in_zip, AxisColumn& column) {
        if (list.kind != JsonNode::Kind::array || list.children.empty()) {
            report_mismatch(list, path, "a list of at least one value", diagnostics_);
            return;
        }
        for (std::size_t i = 0; i < list.children.size(); ++i) {
            const JsonNode& element = list.children[i];
            std::string value = canonical_json(element);
            const auto earlier = std::find(column.values.begin(), column.values.end(), value);
            if (earlier != column.values.end() && !in_zip) {
                const auto first = static_cast<std::size_t>(earlier - column.values.begin());
                diagnostics_.report(element.value_place, path + "." + std::to_string(i),
                                    "the same value as at " + diagnostics_.describe(list.children[first].value_place),
                                    "remove one of the two");
            }
            column.values.push_back(std::move(value));
            column.value_places.push_back(element.value_place);
            column.value_keys.push_back(path + "." + std::to_string(i));
        }
    }

    std::vector<double> read_range(const JsonNode& node, const std::string& path) {
        const std::size_t faults_before = diagnostics_.count();
        const ObjectReader reader(node, path, "families.axes.range", diagnostics_, sweep_vocabulary());
        if (node.kind != JsonNode::Kind::object) {
            return {};
        }
        const RealRange any{-std::numeric_limits<double>::max()};
        const double from = reader.real("from", any);
        const double to = reader.real("to", any);
        const double step = node.find("step") == nullptr ? 1.0 : reader.real("step", any_positive);
        if (diagnostics_.count() > faults_before) {
            return {};
        }
        if (!check_ends(reader, from, to)) {
            return {};
        }
        if ((to - from) / step >= static_cast<double>(most_combinations)) {
            reader.report("step", "more than " + std::to_string(most_combinations) + " values");
            return {};
        }
        std::vector<double> numbers = range_values(from, to, step);
        if (numbers.empty()) {
            reader.report("step", "the numbers of this range take more than 15 digits", "list them as \"values\"");
        }
        return numbers;
    }

    std::vector<double> read_log_range(const JsonNode& node, const std::string& path) {
        const std::size_t faults_before = diagnostics_.count();
        const ObjectReader reader(node, path, "families.axes.log_range", diagnostics_, sweep_vocabulary());
        if (node.kind != JsonNode::Kind::object) {
            return {};
        }
        const double from = reader.real("from", any_positive);
        const double to = reader.real("to", any_positive);
        const std::int64_t count = reader.whole("count", 2, most_combinations);
        if (diagnostics_.count() > faults_before || !check_ends(reader, from, to)) {
            return {};
        }
        return log_range_values(from, to, count);
    }

    bool check_ends(const ObjectReader& reader, double from, double to) {
        if (from > to) {
            reader.report(
                "to", "expected a number of at least \"from\" = " + number_text(from) + ", found " + number_text(to));
        }
        return from <= to;
    }

    Diagnostics& diagnostics_;
};

}  // namespace

bool lies_in(std::string_view inner, std::string_view outer) {
    return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '.');
}

bool check_path(const std::string& path, Place place, const std::string& key, Diagnostics& diagnostics) {
    const PathFault fault = check_scenario_path(path);
    if (!fault.message.empty()) {
        diagnostics.report(place_in_string(diagnostics, place, fault.offset), key, fault.message, fault.hint,
                           fault.suggestion);
    }
    return fault.message.empty();
}

std::vector<double> range_values(double from, double to, double step) {
    const Decimal decimals[] = {decimal(from), decimal(to), decimal(step)};
    int exponent = std::numeric_limits<int>::max();
    for (const Decimal& number : decimals) {
        exponent = number.digits == 0 ? exponent : std::min(exponent, number.exponent);
    }
    const std::optional<std::int64_t> first = digits_at(decimals[0], exponent);
    const std::optional<std::int64_t> last = digits_at(decimals[1], exponent);
    const std::optional<std::int64_t> stride = digits_at(decimals[2], exponent);
    if (!first || !last || !stride) {
        return {};
    }
    std::vector<double> values;
    for (std::int64_t digits = *first; digits <= *last; digits += *stride) {
        const std::string text = std::to_string(digits) + "e" + std::to_string(exponent);
        values.push_back(parse_number(text.data(), text.data() + text.size()));
    }
    return values;
}

std::vector<double> log_range_values(double from, double to, std::int64_t count) {
    const bool whole = is_whole(from) && is_whole(to);
    const double log_ratio = portable::log(to) - portable::log(from);
    std::vector<double> values = {from};
    for (std::int64_t i = 1; i < count; ++i) {
        const double share = static_cast<double>(i) / static_cast<double>(count - 1);
        const double exact = i == count - 1 ? to : from * portable::exp(log_ratio * share);
        const double value = i == count - 1 ? to : whole ? std::floor(exact + 0.5) : round_to_digits(exact, 6);
        if (value > values.back()) {
            values.push_back(std::min(value, to));
        }
    }
    return values;
}

std::vector<Axis> read_axes(const JsonNode& list, const std::string& path, Diagnostics& diagnostics) {
    std::vector<Axis> axes;
    if (list.kind != JsonNode::Kind::array) {
        report_mismatch(list, path, "a list of axes", diagnostics);
        return axes;
    }
    AxesReader reader(diagnostics);
    std::vector<std::pair<std::string, Place>> earlier;
    double combinations = 1.0;
    for (std::size_t i = 0; i < list.children.size(); ++i) {
        const std::string here = path + "." + std::to_string(i);
        std::optional<Axis> axis = reader.read(list.children[i], here);
        if (!axis) {
            continue;
        }
        for (const AxisColumn& column : axis->columns) {
            for (const auto& [other, place] : earlier) {
                if (lies_in(other, column.path)) {
                    diagnostics.report(column.path_place, here,
                                       "overwrites " + other + " of the axis at " + diagnostics.describe(place),
                                       other == column.path ? "" : "the axis of the larger part stands first");
                }
            }
            earlier.emplace_back(column.path, column.path_place);
        }
        combinations *= static_cast<double>(axis->size());
        axes.push_back(std::move(*axis));
    }
    if (combinations > static_cast<double>(most_combinations)) {
        diagnostics.report(list.value_place, path,
                           "the axes have more than " + std::to_string(most_combinations) + " combinations");
    }
    return axes;
}

}  // namespace millrace
