#include <algorithm>

#include "sim/engine/content_hash.h"
#include "sim/scenario/decode.h"
#include "sim/scenario/defaults.h"
#include "sim/scenario/input_file.h"
#include "sim/sweep/sweep_family.h"

namespace millrace {
namespace {

/// Goes through the combinations of a family's axes.
class DesignBuilder {
   public:
    DesignBuilder(const Family& family, std::uint64_t seed, Diagnostics& diagnostics)
        : family_(family), diagnostics_(diagnostics), satisfied_(family.constraints.size(), 0) {
        if (seed != family.base_seed && !family.set_value("seed") && !family.has_axis("seed")) {
            fixed_.push_back({"seed=" + std::to_string(seed), family.base_place, family.key + ".base"});
        }
        fixed_.insert(fixed_.end(), family.set.begin(), family.set.end());
    }

    std::vector<Design> build() {
        std::vector<std::size_t> row(family_.axes.size(), 0);
        bool more = true;
        while (more) {
            add(row);
            more = false;
            for (std::size_t axis = row.size(); axis-- > 0 && !more;) {
                row[axis] = row[axis] + 1 < family_.axes[axis].size() ? row[axis] + 1 : 0;
                more = row[axis] > 0;
            }
        }
        report_failure_of_all();
        return std::move(designs_);
    }

   private:
    void add(const std::vector<std::size_t>& row) {
        Design design;
        design.family = family_.name;
        design.base = family_.base_file;
        std::vector<Change> changes = fixed_;
        for (std::size_t axis = 0; axis < row.size(); ++axis) {
            for (const AxisColumn& column : family_.axes[axis].columns) {
                const std::string& value = column.values[row[axis]];
                design.values.emplace_back(column.path, value);
                changes.push_back({column.path + "=" + value, column.value_places[row[axis]], family_.key + ".axes"});
            }
        }
        for (const Change& change : changes) {
            design.set.push_back(change.text);
        }
        try {
            Diagnostics of_changes = diagnostics_of(family_.base, family_.name, design.set);
            JsonNode root = parse_input(of_changes, scenario_vocabulary());
            if (!of_changes.empty()) {
                // A path into something that is no object: there is no whole scenario to take the hash of.
                std::string text = resolved_json(root);
                for (const std::string& change : design.set) {
                    text += '\n' + change;
                }
                design.id = hash_text(content_hash(text));
                of_changes.throw_if_any();
            }
            fill_scenario_defaults(root);
            if (!satisfies_constraints(root)) {
                return;
            }
            design.id = hash_text(content_hash(resolved_json(std::move(root))));
            design.scenario = decode_scenario(family_.base, family_.name, design.set);
        } catch (const ScenarioError& error) {
            const ScenarioProblem& problem = error.problems().front();
            design.error = (problem.key.empty() ? "" : problem.key + ": ") + problem.message;
            if (designs_.empty()) {
                culprit_ =
                    std::find_if(changes.begin(), changes.end(),
                                 [&](const Change& change) { return problem.source == "--set " + change.text; }) -
                    changes.begin();
                first_changes_ = std::move(changes);
            }
        }
        designs_.push_back(std::move(design));
    }

    bool satisfies_constraints(const JsonNode& root) {
        bool all = true;
        for (std::size_t i = 0; i < family_.constraints.size(); ++i) {
            const Family::Condition& condition = family_.constraints[i];
            try {
                const bool holds = condition.constraint.holds(root);
                satisfied_[i] += holds ? 1 : 0;
                all = all && holds;
            } catch (const ConstraintError& error) {
                // What an earlier constraint excludes is not asked to make sense to a later one.
                if (all) {
                    diagnostics_.report(place_in_string(diagnostics_, condition.place, error.offset),
                                        family_.key + ".constraints." + std::to_string(i), error.what(), error.hint);
                    faulty_ = true;
                }
                all = false;
            }
        }
        return all;
    }

    void report_failure_of_all() {
        if (designs_.empty() && !faulty_) {
            bool one_alone = false;
            for (std::size_t i = 0; i < satisfied_.size(); ++i) {
                if (satisfied_[i] == 0) {
                    one_alone = true;
                    diagnostics_.report(family_.constraints[i].place, family_.key + ".constraints." + std::to_string(i),
                                        "no combination of the family's axes satisfies this");
                }
            }
            if (!one_alone) {
                diagnostics_.report(family_.constraints_place, family_.key + ".constraints",
                                    "no combination of the family's axes satisfies all of these");
            }
        }
        const bool none_possible =
            !designs_.empty() &&
            std::none_of(designs_.begin(), designs_.end(), [](const Design& d) { return d.scenario.has_value(); });
        if (none_possible) {
            const auto at = static_cast<std::size_t>(culprit_);
            const bool known = at < first_changes_.size();
            const std::string all = designs_.size() == 1 ? "the family's only design is impossible: "
                                                         : "all " + std::to_string(designs_.size()) +
                                                               " designs of the family are impossible, the first by ";
            diagnostics_.report(known ? first_changes_[at].place : family_.base_place,
                                known ? first_changes_[at].key : family_.key + ".base", all + designs_.front().error);
        }
    }

    const Family& family_;
    Diagnostics& diagnostics_;
    std::vector<Change> fixed_;  ///< what every design of the family gets
    std::vector<Design> designs_;
    std::vector<std::int64_t> satisfied_;  ///< combinations that satisfy each constraint
    bool faulty_ = false;                  ///< a constraint could not be evaluated
    std::vector<Change> first_changes_;    ///< of the first design, if it is impossible
    std::ptrdiff_t culprit_ = 0;           ///< which of them is to blame; past the end: the base
};

}  // namespace

std::vector<Design> designs_of(const Family& family, std::uint64_t seed, Diagnostics& diagnostics) {
    return DesignBuilder(family, seed, diagnostics).build();
}

}  // namespace millrace
