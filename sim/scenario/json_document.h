// A JSON document in which every key and every value knows where it stands, so that an error can point at it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/diagnostics.h"

namespace millrace {

struct JsonNode {
    enum class Kind { null, boolean, integer, real, string, array, object };

    Kind kind = Kind::null;
    bool boolean = false;
    std::int64_t integer = 0;        ///< of a number written without fraction and exponent; at most 2^53 in magnitude
    double real = 0.0;               ///< of any number
    std::string string;              ///< decoded text of a string
    std::vector<JsonNode> children;  ///< elements of an array, members of an object in the order of the file
    std::string key;                 ///< name of this member, when its parent is an object
    Place key_place;                 ///< where the key stands; of an array's element, where the element stands
    Place value_place;               ///< first character of the value

    bool is_number() const { return kind == Kind::integer || kind == Kind::real; }
    /// The member called `name`, or null.
    const JsonNode* find(std::string_view name) const;
    JsonNode* find(std::string_view name);
};

/// Integers beyond 2^53 do not survive readers that keep numbers as doubles, so they are refused.
inline constexpr std::int64_t largest_json_integer = std::int64_t{1} << 53;

/// Parses source number `source` of `diagnostics` from byte `begin` on, as the value at `path` of the scenario. RFC
/// 8259 to the letter, and stricter: no duplicate keys, no integer beyond 2^53, no number beyond a double's range, at
/// most 100 nested levels. What is wrong is reported to `diagnostics`. Returns false when there is no usable document
/// (a syntax error); after a lesser fault (a duplicate key, an integer that is too large) the document is returned for
/// further checks.
bool parse_json(JsonNode& root, int source, std::size_t begin, Diagnostics& diagnostics, std::string_view path = "");

/// The member of nested objects and arrays that a dotted path names ("store.capacity", "published.0.value"), or null.
const JsonNode* find_path(const JsonNode& root, std::string_view dotted);

/// Where byte `index` of a decoded string stands in the text, escapes and all; `begin` is the place of the string.
Place place_in_string(const Diagnostics& diagnostics, Place begin, std::size_t index);

/// One line of JSON with sorted keys; a whole number is written without a fraction whichever way it was read. Equal
/// texts mean equal documents.
std::string canonical_json(const JsonNode& node);

/// Whether the text is UTF-8, as all text in JSON must be.
bool is_valid_utf8(std::string_view text);

/// A value as an error message quotes it: `"fifo"`, `3.7`, `an object`.
std::string describe_value(const JsonNode& node);

}  // namespace millrace
