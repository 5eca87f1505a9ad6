#include "sim/scenario/json_document.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t deepest_nesting = 100;

/// Builds the document from nlohmann's parse events. The events carry no positions, so a cursor follows them through
/// the text: it stands behind the last token, and the next one begins after white space, commas and colons.
class DocumentBuilder : public nlohmann::json_sax<nlohmann::json> {
   public:
    DocumentBuilder(JsonNode& root, int source, std::size_t begin, Diagnostics& diagnostics, std::string_view path)
        : root_(root),
          root_path_(path),
          source_(source),
          begin_(begin),
          text_(diagnostics.text(source)),
          diagnostics_(diagnostics) {
        cursor_ = begin;
    }

    bool null() override {
        take_word();
        add(JsonNode::Kind::null);
        return true;
    }
    bool boolean(bool value) override {
        take_word();
        add(JsonNode::Kind::boolean).boolean = value;
        return true;
    }
    bool number_integer(number_integer_t value) override {
        take_word();
        JsonNode& node = add(JsonNode::Kind::integer);
        if (value < -largest_json_integer) {
            return report_integer(node);
        }
        node.integer = value;
        node.real = static_cast<double>(value);
        return true;
    }
    bool number_unsigned(number_unsigned_t value) override {
        take_word();
        JsonNode& node = add(JsonNode::Kind::integer);
        if (value > static_cast<number_unsigned_t>(largest_json_integer)) {
            return report_integer(node);
        }
        node.integer = static_cast<std::int64_t>(value);
        node.real = static_cast<double>(value);
        return true;
    }
    bool number_float(number_float_t value, const string_t& digits) override {
        take_word();
        // An integer beyond 64 bits arrives here as a double.
        const bool is_real = digits.find_first_of(".eE") != string_t::npos;
        JsonNode& node = add(is_real ? JsonNode::Kind::real : JsonNode::Kind::integer);
        node.real = value;
        return is_real || report_integer(node);
    }
    bool string(string_t& value) override {
        take_string();
        add(JsonNode::Kind::string).string = std::move(value);
        return true;
    }
    bool binary(binary_t&) override { return false; }  // not in JSON text

    bool start_object(std::size_t) override { return open(JsonNode::Kind::object); }
    bool start_array(std::size_t) override { return open(JsonNode::Kind::array); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool key(string_t& name) override {
        take_string();
        pending_key_ = std::move(name);
        pending_key_place_ = token_;
        return true;
    }

    bool parse_error(std::size_t position, const std::string& last_token,
                     const nlohmann::detail::exception& error) override {
        // `position` counts the bytes read. A fault inside a token is at the last of them, an unexpected token or a
        // number beyond range at its first.
        const std::string_view what = error.what();
        const bool out_of_range = error.id == 406;
        const bool whole_token = out_of_range || what.find("unexpected") != std::string_view::npos;
        const char last = last_token.empty() ? '\0' : last_token.back();
        const bool is_bracket = std::string_view("{}[],:").find(last) != std::string_view::npos;  // keeps what preceded
        const std::size_t length = whole_token && !is_bracket && last != '\0' ? last_token.size() : 1;
        std::size_t offset = begin_ + position;
        offset -= std::min(position, length);
        const bool at_end = what.find("unexpected end of input") != std::string_view::npos;
        offset = at_end ? text_.size() : std::min(offset, text_.size());
        if (out_of_range) {
            report(offset, "the number " + last_token + " is beyond the range of a double");
            return false;
        }
        explain_syntax(offset, at_end, essence(what));
        return false;
    }

   private:
    /// The fact in "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value
    /// - invalid literal; last read: '8, /'; expected ']'": what stands before it is said elsewhere, and "last read"
    /// holds whatever came before, too.
    static std::string essence(std::string_view what) {
        const std::size_t dash = what.find(" - ");
        std::string fact(dash == std::string_view::npos ? what : what.substr(dash + 3));
        const std::size_t last_read = fact.find("; last read: '");
        if (last_read != std::string::npos) {
            const std::size_t expected = fact.rfind("'; expected ");
            const bool goes_on = expected != std::string::npos && expected > last_read;
            fact.erase(last_read, goes_on ? expected + 1 - last_read : std::string::npos);
        }
        return fact;
    }

    /// The faults that people make are named; the rest is in nlohmann's words.
    void explain_syntax(std::size_t offset, bool at_end, std::string message) {
        const std::string_view rest = text_.substr(offset);
        const std::size_t before = text_.substr(0, offset).find_last_not_of(" \t\r\n");
        const char previous = before == std::string_view::npos || before < begin_ ? '\0' : text_[before];
        if (at_end && previous == '\0') {
            return report(offset, "the file is empty", "a scenario is a JSON object: { \"name\": ... }");
        }
        if (previous == ',' && (rest.starts_with('}') || rest.starts_with(']'))) {
            return report(before, "a comma before the closing bracket", "JSON allows no trailing comma: remove it");
        }
        std::string hint;
        if (rest.starts_with('/') || rest.starts_with('#') || rest.starts_with("--")) {
            hint = "JSON has no comments: use the \"description\" key";
        } else if (rest.starts_with("NaN") || rest.starts_with("nan") || rest.starts_with("Inf") ||
                   rest.starts_with("inf")) {
            hint = "JSON has no NaN and no Infinity: write a finite number";
        } else if (rest.starts_with('\'')) {
            hint = "JSON strings stand in double quotes";
        } else if (rest.starts_with("True") || rest.starts_with("False") || rest.starts_with("None")) {
            hint = "JSON writes true, false and null";
        } else if (open_.empty() && !at_end && root_done_) {
            message = "unexpected text after the end of the document";
        } else if (!at_end && (message.ends_with("expected '}'") || message.ends_with("expected ']'"))) {
            hint = "is a comma missing before it?";
        } else if (at_end && !open_.empty()) {
            hint = "the bracket opened at " + diagnostics_.describe(open_.back()->value_place) + " is not closed";
        }
        report(offset, "not valid JSON: " + message, hint);
    }

    void report(std::size_t offset, std::string message, std::string hint = "") {
        diagnostics_.report({source_, offset}, "", std::move(message), std::move(hint));
    }

    bool report_integer(const JsonNode& node) {
        diagnostics_.report(
            node.value_place, path_to(node.key),
            "an integer beyond 2^53 = " + std::to_string(largest_json_integer) + " cannot be read exactly",
            "write a smaller one, or a number with an exponent where fractions are allowed");
        return true;
    }

    void skip_separators() {
        while (cursor_ < text_.size() && std::string_view(" \t\r\n,:").find(text_[cursor_]) != std::string_view::npos) {
            ++cursor_;
        }
        token_ = {source_, cursor_};
    }
    void take_word() {
        skip_separators();
        while (cursor_ < text_.size() &&
               std::string_view(" \t\r\n,]}").find(text_[cursor_]) == std::string_view::npos) {
            ++cursor_;
        }
    }
    void take_string() {
        skip_separators();
        ++cursor_;
        while (cursor_ < text_.size() && text_[cursor_] != '"') {
            cursor_ += text_[cursor_] == '\\' ? 2 : 1;
        }
        ++cursor_;
    }

    JsonNode& add(JsonNode::Kind kind) {
        root_done_ = open_.empty();
        JsonNode* node = &root_;
        if (!open_.empty()) {
            JsonNode& parent = *open_.back();
            const bool in_object = parent.kind == JsonNode::Kind::object;
            const JsonNode* earlier = in_object ? parent.find(pending_key_) : nullptr;
            if (earlier != nullptr) {
                diagnostics_.report(pending_key_place_, path_to(pending_key_),
                                    "duplicate key, first given at " + diagnostics_.describe(earlier->key_place),
                                    "remove one of the two");
                ignored_.push_back(std::make_unique<JsonNode>());
                node = ignored_.back().get();
            } else {
                node = &parent.children.emplace_back();
            }
            if (in_object) {
                node->key = pending_key_;
            }
            node->key_place = in_object ? pending_key_place_ : token_;
        } else {
            node->key_place = token_;
        }
        node->kind = kind;
        node->value_place = token_;
        return *node;
    }

    bool open(JsonNode::Kind kind) {
        skip_separators();
        ++cursor_;
        if (open_.size() >= deepest_nesting) {
            report(token_.offset, "more than " + std::to_string(deepest_nesting) + " nested levels");
            return false;
        }
        JsonNode& node = add(kind);
        open_.push_back(&node);  // stays put: its parent gets no sibling before it is closed
        return true;
    }
    bool close() {
        skip_separators();
        ++cursor_;
        open_.pop_back();
        root_done_ = open_.empty();
        return true;
    }

    /// Dotted path of a member `name` of the innermost open object.
    std::string path_to(const std::string& name) const {
        std::string path(root_path_);
        if (open_.empty()) {
            return path;
        }
        path += path.empty() ? "" : ".";
        for (std::size_t i = 1; i < open_.size(); ++i) {
            const JsonNode& parent = *open_[i - 1];
            path += parent.kind == JsonNode::Kind::object ? open_[i]->key : std::to_string(parent.children.size() - 1);
            path += '.';
        }
        if (open_.back()->kind == JsonNode::Kind::array) {
            return path + std::to_string(open_.back()->children.size() - 1);
        }
        return path + name;
    }

    JsonNode& root_;
    std::string_view root_path_;
    int source_;
    std::size_t begin_;
    std::string_view text_;
    Diagnostics& diagnostics_;
    std::size_t cursor_ = 0;
    Place token_;
    std::string pending_key_;
    Place pending_key_place_;
    std::vector<JsonNode*> open_;
    std::vector<std::unique_ptr<JsonNode>> ignored_;  // values of duplicate keys
    bool root_done_ = false;
};

nlohmann::json to_nlohmann(const JsonNode& node) {
    switch (node.kind) {
        case JsonNode::Kind::null:
            return nullptr;
        case JsonNode::Kind::boolean:
            return node.boolean;
        case JsonNode::Kind::integer:
            return node.integer;
        case JsonNode::Kind::real: {
            const bool whole =
                node.real == std::floor(node.real) && std::abs(node.real) <= static_cast<double>(largest_json_integer);
            return whole ? nlohmann::json(static_cast<std::int64_t>(node.real)) : nlohmann::json(node.real);
        }
        case JsonNode::Kind::string:
            return node.string;
        case JsonNode::Kind::array: {
            nlohmann::json array = nlohmann::json::array();
            for (const JsonNode& child : node.children) {
                array.push_back(to_nlohmann(child));
            }
            return array;
        }
        case JsonNode::Kind::object: {
            nlohmann::json object = nlohmann::json::object();
            for (const JsonNode& child : node.children) {
                object[child.key] = to_nlohmann(child);
            }
            return object;
        }
    }
    return nullptr;
}

}  // namespace

const JsonNode* JsonNode::find(std::string_view name) const {
    if (kind != Kind::object) {
        return nullptr;
    }
    const auto found = std::find_if(children.begin(), children.end(), [&](const JsonNode& c) { return c.key == name; });
    return found == children.end() ? nullptr : &*found;
}

JsonNode* JsonNode::find(std::string_view name) {
    return const_cast<JsonNode*>(std::as_const(*this).find(name));
}

bool parse_json(JsonNode& root, int source, std::size_t begin, Diagnostics& diagnostics, std::string_view path) {
    const std::string& text = diagnostics.text(source);
    DocumentBuilder builder(root, source, begin, diagnostics, path);
    return nlohmann::json::sax_parse(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), &builder);
}

const JsonNode* find_path(const JsonNode& root, std::string_view dotted) {
    const JsonNode* node = &root;
    while (node != nullptr && !dotted.empty()) {
        const std::string_view step = dotted.substr(0, dotted.find('.'));
        dotted.remove_prefix(std::min(dotted.size(), step.size() + 1));
        if (node->kind == JsonNode::Kind::array) {
            std::size_t index = 0;
            const auto [end, fault] = std::from_chars(step.data(), step.data() + step.size(), index);
            const bool valid =
                fault == std::errc{} && end == step.data() + step.size() && index < node->children.size();
            node = valid ? &node->children[index] : nullptr;
        } else {
            node = node->find(step);
        }
    }
    return node;
}

Place place_in_string(const Diagnostics& diagnostics, Place begin, std::size_t index) {
    const std::string_view text = diagnostics.text(begin.source);
    std::size_t at = begin.offset;
    if (at >= text.size() || text[at] != '"') {
        return {begin.source, std::min(at + index, text.size())};  // the value of an override, taken as a string
    }
    ++at;
    const auto hex_at = [&](std::size_t digits) {
        unsigned code = 0;
        std::from_chars(text.data() + digits, text.data() + std::min(digits + 4, text.size()), code, 16);
        return code;
    };
    for (std::size_t decoded = 0; at < text.size() && text[at] != '"';) {
        std::size_t written = 1;
        std::size_t meant = 1;  // bytes of UTF-8
        if (text[at] == '\\' && at + 1 < text.size()) {
            written = 2;
            if (text[at + 1] == 'u') {
                const unsigned code = hex_at(at + 2);
                const bool is_pair = code >= 0xD800U && code < 0xDC00U;
                written = is_pair ? 12 : 6;
                meant = is_pair ? 4 : code < 0x80U ? 1 : code < 0x800U ? 2 : 3;
            }
        }
        if (decoded + meant > index) {
            break;
        }
        decoded += meant;
        at += written;
    }
    return {begin.source, at};
}

std::string canonical_json(const JsonNode& node) {
    return to_nlohmann(node).dump();
}

bool is_valid_utf8(std::string_view text) {
    try {
        static_cast<void>(nlohmann::json(text).dump());
        return true;
    } catch (const nlohmann::json::type_error&) {
        return false;
    }
}

std::string describe_value(const JsonNode& node) {
    switch (node.kind) {
        case JsonNode::Kind::array:
            return "a list";
        case JsonNode::Kind::object:
            return "an object";
        case JsonNode::Kind::real: {
            // As written, with its fraction: "3.0", not "3".
            return nlohmann::json(node.real).dump();
        }
        case JsonNode::Kind::string: {
            constexpr std::size_t longest = 40;
            const std::string quoted =
                nlohmann::json(node.string).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
            return quoted.size() <= longest ? quoted : "a string of " + std::to_string(node.string.size()) + " bytes";
        }
        default:
            return canonical_json(node);
    }
}

}  // namespace millrace
