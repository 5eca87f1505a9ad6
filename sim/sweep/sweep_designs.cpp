#include <algorithm>
#include <cctype>
#include <map>

#include "sim/engine/content_hash.h"
#include "sim/scenario/decode.h"
#include "sim/scenario/defaults.h"
#include "sim/scenario/input_file.h"
#include "sim/sweep/sweep_family.h"

namespace millrace {
namespace {

/// Evaluates all constraints, so that one which never holds is known to.
void check_constraints(const Family& family, const JsonNode& root, Combination& made) {
    made.is_design = true;
    for (std::size_t i = 0; i < family.constraints.size(); ++i) {
        bool holds = false;
        try {
            holds = family.constraints[i].constraint.holds(root);
        } catch (const ConstraintError& error) {
            if (made.is_design) {
                made.fault.emplace(i, error);
            }
        }
        made.holds.push_back(holds);
        made.is_design = made.is_design && holds;
    }
}

/// Whether this is wrong with the value of the axis at `path` by itself. Of a value that is an object, so is a key in
/// it that is unknown.
bool is_of_value(const ScenarioProblem& problem, const std::string& path, const std::string& value) {
    return problem.source == "--set " + path + "=" + value && lies_in(problem.key, path) &&
           (problem.kind == FaultKind::of_value ||
            (problem.kind == FaultKind::of_object && problem.key.size() > path.size()));
}

std::string values_text(const AxisValues& values) {
    std::string text;
    for (const auto& [path, value] : values) {
        text += (text.empty() ? "" : ", ") + path + "=" + value;
    }
    return text;
}

/// Goes through the combinations of a family's axes.
class DesignBuilder {
   public:
    DesignBuilder(const Family& family, std::uint64_t seed, Diagnostics& diagnostics)
        : family_(family),
          diagnostics_(diagnostics),
          fixed_(fixed_changes(family, seed)),
          satisfied_(family.constraints.size(), 0) {
        for (const Axis& axis : family.axes) {
            for (const AxisColumn& column : axis.columns) {
                tried_.emplace_back(column.values.size());
            }
        }
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
        const bool values_are_good = check_values();
        report_constraint_faults(values_are_good);
        if (values_are_good) {
            report_failure_of_all();
        }
        return std::move(designs_);
    }

   private:
    /// What is known of one value of an axis.
    struct Tried {
        std::int64_t decoded = 0;  ///< combinations with it
        std::int64_t wrong = 0;    ///< those in which it is wrong by itself
        ScenarioProblem problem;   ///< the first time it was
    };
    struct ConstraintFault {
        std::size_t constraint;
        ConstraintError error;
        bool by_a_value;  ///< some value of an axis was wrong by itself
    };
    struct Reason {
        std::int64_t designs = 0;
        std::string text;   ///< for the first design
        std::string first;  ///< its values
    };

    void add(const std::vector<std::size_t>& row) {
        AxisValues values;
        for (std::size_t axis = 0; axis < row.size(); ++axis) {
            for (const AxisColumn& column : family_.axes[axis].columns) {
                values.emplace_back(column.path, column.values[row[axis]]);
            }
        }
        Combination made = combine(family_, fixed_, std::move(values));
        const bool by_a_value = made.was_decoded && count_values(row, made);
        if (made.fault) {
            faults_.push_back({made.fault->first, made.fault->second, by_a_value});
        }
        for (std::size_t i = 0; i < made.holds.size(); ++i) {
            satisfied_[i] += made.holds[i] ? 1 : 0;
        }
        if (!made.is_design) {
            return;
        }
        if (!made.design.scenario) {
            note_reason(row, made);
        }
        designs_.push_back(std::move(made.design));
    }

    /// Returns whether some value of the combination is wrong by itself.
    bool count_values(const std::vector<std::size_t>& row, const Combination& made) {
        bool any = false;
        for_each_column([&](std::size_t axis, const AxisColumn& column, std::vector<Tried>& tried) {
            Tried& value = tried[row[axis]];
            ++value.decoded;
            const bool wrong = find_fault(made.problems, column, row[axis], value);
            value.wrong += wrong ? 1 : 0;
            any = any || wrong;
        });
        return any;
    }

    static bool find_fault(const std::vector<ScenarioProblem>& problems, const AxisColumn& column, std::size_t row,
                           Tried& value) {
        const auto fault = std::find_if(problems.begin(), problems.end(), [&](const ScenarioProblem& problem) {
            return is_of_value(problem, column.path, column.values[row]);
        });
        if (fault != problems.end() && value.problem.message.empty()) {
            value.problem = *fault;
        }
        return fault != problems.end();
    }

    template <typename Visit>
    void for_each_column(const Visit& visit) {
        std::size_t place = 0;
        for (std::size_t axis = 0; axis < family_.axes.size(); ++axis) {
            for (const AxisColumn& column : family_.axes[axis].columns) {
                visit(axis, column, tried_[place++]);
            }
        }
    }

    /// Reports the values that are wrong in every combination, also when constraints exclude all of these: then alone,
    /// on top of the base.
    bool check_values() {
        const std::size_t faults_before = diagnostics_.count();
        for_each_column([&](std::size_t, const AxisColumn& column, std::vector<Tried>& tried) {
            for (std::size_t row = 0; row < tried.size(); ++row) {
                Tried& value = tried[row];
                if (value.decoded == 0) {
                    Family alone = family_;
                    alone.constraints.clear();
                    const Combination made = combine(alone, fixed_, {{column.path, column.values[row]}});
                    value.decoded = made.was_decoded ? 1 : 0;
                    value.wrong = made.was_decoded && find_fault(made.problems, column, row, value) ? 1 : 0;
                }
                if (value.wrong > 0 && value.wrong == value.decoded) {
                    report_value(column, row, value.problem);
                }
            }
        });
        return diagnostics_.count() == faults_before;
    }

    void report_value(const AxisColumn& column, std::size_t row, const ScenarioProblem& problem) {
        std::string hint = problem.hint;
        if (hint.empty() || hint.find("--set") != std::string::npos) {
            const bool in_quotes =
                column.values[row].starts_with('"') && problem.message.find("number") != std::string::npos;
            hint = in_quotes ? "numbers stand without quotes" : "no design can have this value: leave it out";
        }
        diagnostics_.report(column.value_places[row], column.value_keys[row], problem.key + ": " + problem.message,
                            hint, problem.suggestion);
    }

    void report_constraint_faults(bool values_are_good) {
        for (const ConstraintFault& fault : faults_) {
            if (fault.by_a_value && !values_are_good) {
                continue;  // the value has been reported
            }
            const Family::Condition& condition = family_.constraints[fault.constraint];
            diagnostics_.report(place_in_string(diagnostics_, condition.place, fault.error.offset),
                                family_.key + ".constraints." + std::to_string(fault.constraint), fault.error.what(),
                                fault.error.hint);
        }
    }

    /// Reasons that differ in their numbers only are the same.
    void note_reason(const std::vector<std::size_t>& row, const Combination& made) {
        std::string kind;
        for (const char c : made.design.error) {
            const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
            if (!digit || !kind.ends_with('#')) {
                kind += digit ? '#' : c;
            }
        }
        const auto known = std::find(reason_kinds_.begin(), reason_kinds_.end(), kind);
        if (known != reason_kinds_.end()) {
            ++reasons_[static_cast<std::size_t>(known - reason_kinds_.begin())].designs;
            return;
        }
        if (designs_.empty()) {
            find_culprit(row, made.problems.front());
        }
        reason_kinds_.push_back(std::move(kind));
        reasons_.push_back({1, made.design.error, values_text(made.design.values)});
    }

    /// Of the first design, the change that is to blame; else the base is.
    void find_culprit(const std::vector<std::size_t>& row, const ScenarioProblem& problem) {
        for (const Change& change : fixed_) {
            if (problem.source == "--set " + change.text) {
                culprit_ = {change.place, change.key};
            }
        }
        for_each_column([&](std::size_t axis, const AxisColumn& column, const std::vector<Tried>&) {
            if (problem.source == "--set " + column.path + "=" + column.values[row[axis]]) {
                culprit_ = {column.value_places[row[axis]], column.value_keys[row[axis]]};
            }
        });
    }

    void report_failure_of_all() {
        if (designs_.empty() && faults_.empty()) {
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
        if (!none_possible) {
            return;
        }
        std::string text = "the family's only design is impossible: " + designs_.front().error;
        if (designs_.size() > 1) {
            constexpr std::size_t most_listed = 5;
            text = "all " + std::to_string(designs_.size()) + " designs of the family are impossible";
            for (std::size_t i = 0; i < std::min(reasons_.size(), most_listed); ++i) {
                text += (i == 0 ? ": " : "; ") + std::to_string(reasons_[i].designs) + " by " + reasons_[i].text +
                        " (the first: " + reasons_[i].first + ")";
            }
            if (reasons_.size() > most_listed) {
                text += "; and there are " + std::to_string(reasons_.size() - most_listed) + " reasons more";
            }
        }
        diagnostics_.report(culprit_ ? culprit_->first : family_.base_place,
                            culprit_ ? culprit_->second : family_.key + ".base", text);
    }

    const Family& family_;
    Diagnostics& diagnostics_;
    std::vector<Change> fixed_;
    std::vector<Design> designs_;
    std::vector<std::vector<Tried>> tried_;  ///< by column in the order of the axes, then by value
    std::vector<std::int64_t> satisfied_;    ///< combinations that satisfy each constraint
    std::vector<ConstraintFault> faults_;
    std::vector<std::string> reason_kinds_;  ///< in the order in which they first appear
    std::vector<Reason> reasons_;            ///< why designs are impossible, by kind
    std::optional<std::pair<Place, std::string>> culprit_;
};

}  // namespace

std::vector<Change> fixed_changes(const Family& family, std::uint64_t seed) {
    std::vector<Change> fixed;
    if (seed != family.base_seed && !family.set_value("seed") && !family.has_axis("seed")) {
        fixed.push_back({"seed=" + std::to_string(seed), family.base_place, family.key + ".base"});
    }
    fixed.insert(fixed.end(), family.set.begin(), family.set.end());
    return fixed;
}

Combination combine(const Family& family, const std::vector<Change>& fixed, AxisValues values) {
    Combination made;
    Design& design = made.design;
    design.family = family.name;
    design.base = family.base_file;
    design.values = std::move(values);
    for (const Change& change : fixed) {
        design.set.push_back(change.text);
    }
    for (const auto& [path, value] : design.values) {
        const auto axis = std::find_if(family.axes.begin(), family.axes.end(), [&](const Axis& one) {
            return std::any_of(one.columns.begin(), one.columns.end(),
                               [&](const AxisColumn& column) { return column.path == path; });
        });
        design.axes.push_back(static_cast<std::size_t>(axis - family.axes.begin()));
        design.set.push_back(path + "=" + value);
    }
    try {
        Diagnostics of_changes = diagnostics_of(family.base, family.name, design.set);
        JsonNode root = parse_input(of_changes, scenario_vocabulary());
        if (!of_changes.empty()) {
            // A path into something that is no object: there is no whole scenario to take the hash of.
            std::string text = resolved_json(root);
            for (const std::string& change : design.set) {
                text += '\n' + change;
            }
            design.id = hash_text(content_hash(text));
            made.is_design = true;
            of_changes.throw_if_any();
        }
        fill_scenario_defaults(root);
        check_constraints(family, root, made);
        if (!made.is_design && !made.fault) {
            return made;
        }
        design.id = hash_text(content_hash(resolved_json(std::move(root))));
        made.was_decoded = true;
        design.scenario = decode_scenario(family.base, family.name, design.set);
    } catch (const ScenarioError& error) {
        made.problems = error.problems();
        const ScenarioProblem& problem = made.problems.front();
        design.error = (problem.key.empty() ? "" : problem.key + ": ") + problem.message;
    }
    return made;
}

std::vector<Design> designs_of(const Family& family, std::uint64_t seed, Diagnostics& diagnostics) {
    return DesignBuilder(family, seed, diagnostics).build();
}

}  // namespace millrace
