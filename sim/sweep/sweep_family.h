// One family of a sweep file: from its base scenario, its axes and its constraints to its designs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/json_document.h"
#include "sim/sweep/axes.h"
#include "sim/sweep/constraint.h"
#include "sim/sweep/design.h"

namespace millrace {

/// One change to the base scenario, and the place of the sweep file that asks for it.
struct Change {
    std::string text;  ///< path=value, as a `--set` argument
    Place place;
    std::string key;  ///< dotted path in the sweep file
};

struct Family {
    std::string name;
    std::string key;        ///< dotted path in the sweep file, "families.0"
    std::string base;       ///< the scenario before any change, as one line of JSON
    std::string base_file;  ///< as the sweep file names it; may be empty
    Place base_place;
    std::uint64_t base_seed = 1;
    std::vector<Change> set;
    std::vector<Axis> axes;
    struct Condition {
        std::string text;
        Place place;
        Constraint constraint;
    };
    std::vector<Condition> constraints;
    Place constraints_place;

    /// The value that "set" gives to `path`, as JSON, or none.
    std::optional<std::string> set_value(const std::string& path) const;
    bool has_axis(const std::string& path) const;
    /// The family as the resolved form of a sweep has it.
    nlohmann::json resolved() const;
};

class ObjectReader;

/// Reports a name of a sweep or a family that is empty or no single line.
void check_name(const ObjectReader& reader, const std::string& name);

/// Reads families one after the other, and the scenario files they are based on.
class FamilyReader {
   public:
    /// Base scenarios are relative to `folder`; without one, they must stand in the sweep file. What is wrong with a
    /// scenario file goes to `file_problems`.
    FamilyReader(std::optional<std::string> folder, Diagnostics& diagnostics,
                 std::vector<ScenarioProblem>& file_problems)
        : folder_(std::move(folder)), diagnostics_(diagnostics), file_problems_(file_problems) {}

    /// None when something is wrong with it, which has been reported.
    std::optional<Family> read(const JsonNode& node, const std::string& key);

   private:
    bool read_base(const JsonNode& node, Family& family);
    bool read_base_file(const JsonNode& node, Family& family);
    bool read_base_object(const JsonNode& node, Family& family);
    void read_set(const JsonNode& node, const std::string& key, Family& family);
    void read_constraints(const JsonNode& node, const std::string& key, Family& family);

    std::optional<std::string> folder_;
    Diagnostics& diagnostics_;
    std::vector<ScenarioProblem>& file_problems_;
    std::map<std::string, std::optional<std::pair<std::string, std::uint64_t>>> bases_;  ///< by file; none: it is bad
};

/// What every design of a family gets before the values of its axes: `seed`, unless it states its own, and its "set".
std::vector<Change> fixed_changes(const Family& family, std::uint64_t seed);

/// One value for each axis of a family, and what they make.
struct Combination {
    Design design;  ///< without a scenario when it is impossible
    /// Whether it satisfies the constraints; else it is no design.
    bool is_design = false;
    bool was_decoded = false;               ///< `problems` are all that is wrong with it
    std::vector<ScenarioProblem> problems;  ///< of an impossible one
    std::vector<bool> holds;                ///< by constraint
    /// A constraint that makes no sense of it, by index. What an earlier constraint excludes is not asked to make sense
    /// to a later one.
    std::optional<std::pair<std::size_t, ConstraintError>> fault;
};

/// `fixed` are the family's fixed_changes().
Combination combine(const Family& family, const std::vector<Change>& fixed, AxisValues values);

/// The designs of a family, all with `seed` unless it states its own. What makes the family as a whole wrong, or is
/// wrong with one value of an axis whatever the others are, is reported.
std::vector<Design> designs_of(const Family& family, std::uint64_t seed, Diagnostics& diagnostics);

}  // namespace millrace
