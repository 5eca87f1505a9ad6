// Reads the members of one object strictly: every key is known, every value has its type and lies in its range.
//
// Nothing throws: what is wrong goes to the diagnostics, and a placeholder in range is returned so that the reading can
// go on and find the other errors.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/json_document.h"
#include "sim/scenario/vocabulary.h"

namespace millrace {

/// The numbers a real-valued key accepts.
struct RealRange {
    double low = 0.0;
    double high = std::numeric_limits<double>::max();
    bool low_excluded = false;
    bool high_excluded = false;
};

inline constexpr double longest_s = 1e9;    ///< 31 years: whatever is longer is a mistake in the unit
inline constexpr double shortest_s = 1e-9;  ///< the unit of simulated time (sim/engine/time.h)
inline constexpr RealRange any_positive{0.0, std::numeric_limits<double>::max(), true, false};
inline constexpr RealRange any_nonnegative{};
inline constexpr RealRange duration_s{0.0, longest_s};

/// Room for any pipeline that exists, and small enough that nothing overflows or exhausts memory by a typing error.
inline constexpr std::int64_t largest_count = 1'000'000'000;

class ObjectReader {
   public:
    /// An object without kinds. Unknown and missing keys are reported at once.
    ObjectReader(const JsonNode& node, std::string path, std::string_view shape_path, Diagnostics& diagnostics,
                 const Vocabulary& vocabulary = scenario_vocabulary());

    /// One with a `kind`, which kind() then tells; it is empty when the kind is missing or unknown, which has been
    /// reported. Names in `future` are reported as "not supported by this version".
    static ObjectReader with_kind(const JsonNode& node, std::string path, std::string_view shape_path,
                                  Diagnostics& diagnostics, std::vector<std::string_view> future = {},
                                  const Vocabulary& vocabulary = scenario_vocabulary());

    std::string_view kind() const { return kind_; }
    const std::string& path() const { return path_; }
    /// Dotted path of a member.
    std::string path_to(std::string_view key) const;

    /// The member, or null when it is absent.
    const JsonNode* find(std::string_view key) const { return node_.find(key); }

    std::int64_t whole(std::string_view key, std::int64_t low, std::int64_t high = largest_count) const;
    double real(std::string_view key, RealRange range) const;
    bool boolean(std::string_view key) const;
    std::string text(std::string_view key) const;
    /// One of the names; names in `future` are reported as "not supported by this version".
    template <typename Value>
    Value choice(std::string_view key, std::vector<std::pair<std::string_view, Value>> values,
                 std::vector<std::string_view> future = {}) const {
        std::vector<std::string_view> names;
        for (const auto& [name, value] : values) {
            names.push_back(name);
        }
        return values[choice_index(key, names, future)].second;
    }

    /// Reports an error at a member (at the object when the member is absent).
    void report(std::string_view key, std::string message, std::string hint = "", std::string suggestion = "") const;

   private:
    ObjectReader(const JsonNode& node, std::string path, Diagnostics& diagnostics, const Vocabulary& vocabulary)
        : node_(node), path_(std::move(path)), diagnostics_(&diagnostics), vocabulary_(&vocabulary) {}
    void check_keys(const ObjectShape& shape);
    /// Returns the key of this object that was probably meant, or the path of one elsewhere, or nothing.
    std::string report_unknown_key(const JsonNode& member, const ObjectShape& shape) const;
    std::size_t choice_index(std::string_view key, const std::vector<std::string_view>& names,
                             const std::vector<std::string_view>& future) const;

    const JsonNode& node_;
    std::string path_;
    std::string_view kind_;
    Diagnostics* diagnostics_;
    const Vocabulary* vocabulary_;
};

/// A number in `range`, from a node that need not be a member (an element of a list).
double read_real(const JsonNode& node, const std::string& path, RealRange range, Diagnostics& diagnostics);

/// "expected a whole number, found 3.7", with a hint where one helps.
void report_mismatch(const JsonNode& node, const std::string& path, const std::string& expected,
                     Diagnostics& diagnostics);

/// As short as it can be said: "5", "0.25", "1e-06".
std::string number_text(double value);

}  // namespace millrace
