#include "sim/sweep/sweep_file.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "sim/scenario/input_file.h"
#include "sim/scenario/object_reader.h"
#include "sim/sweep/sweep_family.h"
#include "sim/sweep/sweep_vocabulary.h"

namespace millrace {
namespace {

constexpr std::int64_t most_replications = 1'000'000;

/// The part of a scenario without which a metric has no value, and whether a design has it.
struct Need {
    std::string part;
    bool met;
};
std::optional<Need> need_of(const std::string& metric, const Scenario& scenario) {
    if (metric.starts_with("noise/")) {
        return Need{"noise", scenario.pipeline.noise.has_value()};
    }
    if (metric.starts_with("learner/")) {
        return Need{"learner", scenario.learner.has_value()};
    }
    if (metric == "compute/usd_per_update") {
        return Need{"price", scenario.price.has_value()};
    }
    return std::nullopt;
}

class SweepDecoder {
   public:
    SweepDecoder(const JsonNode& root, std::optional<std::string> folder, Diagnostics& diagnostics)
        : root_(root), folder_(std::move(folder)), diagnostics_(diagnostics) {}

    Sweep decode() {
        const ObjectReader reader(root_, "", "", diagnostics_, sweep_vocabulary());
        if (root_.kind == JsonNode::Kind::object) {
            static_cast<void>(reader.text("$schema"));
            sweep_.name = reader.text("name");
            check_name(reader, sweep_.name);
            sweep_.description = reader.text("description");
            read_objectives();
            read_replications(reader);
            read_refinement();
            read_families();
            check_needs();
            check_budget();
        }
        throw_problems();
        sweep_.resolved_json = resolved();
        sweep_.common_seed = common_seed();
        sweep_.families = std::make_shared<const std::vector<Family>>(std::move(families_));
        return std::move(sweep_);
    }

   private:
    void read_objectives() {
        const JsonNode* list = root_.find("objectives");
        if (list == nullptr) {
            return;
        }
        if (list->kind != JsonNode::Kind::array || list->children.size() < 2 || list->children.size() > 3) {
            report_mismatch(*list, "objectives", "a list of two or three objectives", diagnostics_);
            return;
        }
        std::map<std::string, Place> earlier;
        for (std::size_t i = 0; i < list->children.size(); ++i) {
            const ObjectReader reader(list->children[i], "objectives." + std::to_string(i), "objectives", diagnostics_,
                                      sweep_vocabulary());
            if (list->children[i].kind != JsonNode::Kind::object) {
                continue;
            }
            SweepObjective objective;
            objective.metric = reader.text("metric");
            objective.minimize = reader.choice<bool>("goal", {{"minimize", true}, {"maximize", false}});
            const JsonNode* metric = reader.find("metric");
            const std::span<const std::string_view> keys = metric_keys();
            if (metric != nullptr && metric->kind == JsonNode::Kind::string) {
                if (std::find(keys.begin(), keys.end(), objective.metric) == keys.end()) {
                    reader.report("metric", "no metric is called \"" + objective.metric + "\"", "",
                                  nearest_name(objective.metric, keys));
                } else if (const auto [same, is_new] = earlier.emplace(objective.metric, metric->value_place);
                           !is_new) {
                    reader.report("metric", "the same as the objective at " + diagnostics_.describe(same->second));
                }
            }
            sweep_.objectives.push_back(std::move(objective));
        }
    }

    void read_replications(const ObjectReader& root) {
        const JsonNode* node = root_.find("replications");
        ReplicationPlan& plan = sweep_.replications;
        if (node != nullptr && node->kind == JsonNode::Kind::object) {
            const ObjectReader reader(*node, "replications", "replications", diagnostics_, sweep_vocabulary());
            plan.least = reader.whole("least", 1, most_replications);
            plan.most = reader.whole("most", 1, most_replications);
            plan.budget = reader.whole("budget", 1, largest_json_integer);
            if (plan.most < plan.least && diagnostics_.clean("replications")) {
                reader.report("most", "expected at least \"least\" = " + std::to_string(plan.least) + ", found " +
                                          std::to_string(plan.most));
            }
        } else if (node != nullptr && !node->is_number()) {
            report_mismatch(*node, "replications",
                            "a whole number of at least 1, or an object with \"least\", \"most\" and \"budget\"",
                            diagnostics_);
        } else if (node != nullptr) {
            plan.least = root.whole("replications", 1, most_replications);
            plan.most = plan.least;
        }
    }

    void read_refinement() {
        const JsonNode* node = root_.find("refine");
        if (node == nullptr) {
            return;
        }
        const ObjectReader reader(*node, "refine", "refine", diagnostics_, sweep_vocabulary());
        if (node->kind == JsonNode::Kind::object) {
            sweep_.most_added = reader.whole("designs", 1, most_combinations);
        }
    }

    void read_families() {
        const JsonNode* list = root_.find("families");
        if (list == nullptr) {
            return;
        }
        if (list->kind != JsonNode::Kind::array || list->children.empty()) {
            report_mismatch(*list, "families", "a list of at least one family", diagnostics_);
            return;
        }
        FamilyReader reader(folder_, diagnostics_, file_problems_);
        std::map<std::string, Place> names;
        for (std::size_t i = 0; i < list->children.size(); ++i) {
            const std::string key = "families." + std::to_string(i);
            const JsonNode* name = list->children[i].find("name");
            std::optional<Family> family = reader.read(list->children[i], key);
            if (name != nullptr && name->kind == JsonNode::Kind::string) {
                if (const auto [same, is_new] = names.emplace(name->string, name->value_place); !is_new) {
                    diagnostics_.report(name->value_place, key + ".name",
                                        "the same name as at " + diagnostics_.describe(same->second));
                }
            }
            if (family) {
                families_.push_back(std::move(*family));
            }
        }
        for (const Family& family : families_) {
            add_designs(family);
        }
    }

    /// The seed of every family that does not state one: all designs compare under common random numbers.
    std::uint64_t common_seed() const {
        const Family& first = families_.front();
        const std::optional<std::string> stated = first.set_value("seed");
        const bool whole = stated && stated->find_first_not_of("0123456789") == std::string::npos;
        return whole ? std::stoull(*stated) : first.base_seed;  // what is no seed makes the family's designs impossible
    }

    void add_designs(const Family& family) {
        std::size_t repeated = 0;
        std::string first_repeated;
        for (Design& design : designs_of(family, common_seed(), diagnostics_)) {
            const auto [same, is_new] = ids_.emplace(design.id, sweep_.designs.size());
            if (is_new) {
                sweep_.designs.push_back(std::move(design));
            } else if (++repeated == 1) {
                const Design& earlier = sweep_.designs[same->second];
                first_repeated = values_text(design) + " is the same scenario as " + values_text(earlier) +
                                 " of the family \"" + earlier.family + "\"";
            }
        }
        if (repeated > 0) {
            sweep_.warnings.push_back("The family \"" + family.name + "\" repeats " +
                                      (repeated == 1
                                           ? "1 design, which is left out: "
                                           : std::to_string(repeated) + " designs, which are left out, the first: ") +
                                      first_repeated + ".");
        }
    }

    static std::string values_text(const Design& design) {
        std::string text;
        for (const auto& [path, value] : design.values) {
            text += (text.empty() ? "" : ", ") + path + "=" + value;
        }
        return text.empty() ? "the design without axes" : text;
    }

    /// An objective that no design of a family can have.
    void check_needs() {
        const JsonNode* list = root_.find("objectives");
        if (!diagnostics_.empty() || !file_problems_.empty()) {
            return;
        }
        for (std::size_t i = 0; i < sweep_.objectives.size(); ++i) {
            const std::string& metric = sweep_.objectives[i].metric;
            for (const Family& family : families_) {
                std::optional<Need> need;
                for (const Design& design : sweep_.designs) {
                    if (design.scenario && design.family == family.name && !(need && need->met)) {
                        need = need_of(metric, *design.scenario);
                    }
                }
                if (need && !need->met) {
                    diagnostics_.report(list->children[i].find("metric")->value_place,
                                        "objectives." + std::to_string(i) + ".metric",
                                        "no design of the family \"" + family.name + "\" has this metric",
                                        "it takes a scenario with \"" + need->part + "\": in the base, or in \"set\"");
                }
            }
        }
    }

    void check_budget() {
        const ReplicationPlan& plan = sweep_.replications;
        if (plan.budget == 0 || !diagnostics_.empty() || !file_problems_.empty()) {
            return;
        }
        const auto designs =
            sweep_.most_added + std::count_if(sweep_.designs.begin(), sweep_.designs.end(),
                                              [](const Design& design) { return design.scenario.has_value(); });
        if (plan.budget < plan.least * designs) {
            diagnostics_.report(root_.find("replications")->find("budget")->value_place, "replications.budget",
                                "expected at least " + std::to_string(plan.least * designs) +
                                    ", which is \"least\" = " + std::to_string(plan.least) + " for each of " +
                                    std::to_string(designs) + " designs" +
                                    (sweep_.most_added == 0 ? "" : ", those of \"refine\" included") + ", found " +
                                    std::to_string(plan.budget));
        }
        if (plan.least == plan.most) {
            sweep_.replications.budget = 0;  // nothing to share out
        }
    }

    /// What is wrong with the sweep file, then what is wrong with the scenarios that it names.
    void throw_problems() {
        std::vector<ScenarioProblem> problems;
        try {
            diagnostics_.throw_if_any();
        } catch (const ScenarioError& error) {
            problems = error.problems();
        }
        problems.insert(problems.end(), file_problems_.begin(), file_problems_.end());
        if (!problems.empty()) {
            throw ScenarioError(std::move(problems));
        }
    }

    std::string resolved() const {
        using nlohmann::json;
        json document = {{"name", sweep_.name}, {"description", sweep_.description}};
        document["families"] = json::array();
        for (const Family& family : families_) {
            document["families"].push_back(family.resolved());
        }
        document["objectives"] = json::array();
        for (const SweepObjective& objective : sweep_.objectives) {
            document["objectives"].push_back(
                {{"metric", objective.metric}, {"goal", objective.minimize ? "minimize" : "maximize"}});
        }
        const ReplicationPlan& plan = sweep_.replications;
        if (plan.least == plan.most) {
            document["replications"] = plan.least;
        } else {
            document["replications"] = {{"least", plan.least}, {"most", plan.most}, {"budget", plan.budget}};
        }
        if (sweep_.most_added > 0) {
            document["refine"] = {{"designs", sweep_.most_added}};
        }
        return document.dump();
    }

    const JsonNode& root_;
    std::optional<std::string> folder_;
    Diagnostics& diagnostics_;
    std::vector<ScenarioProblem> file_problems_;
    std::vector<Family> families_;
    std::map<std::string, std::size_t> ids_;  ///< index of the design
    Sweep sweep_;
};

Sweep decode(std::string_view text, const std::string& file_name, const std::vector<std::string>& overrides,
             std::optional<std::string> folder) {
    Diagnostics diagnostics = diagnostics_of(text, file_name, overrides);
    const JsonNode root = parse_input(diagnostics, sweep_vocabulary());
    return SweepDecoder(root, std::move(folder), diagnostics).decode();
}

}  // namespace

Sweep decode_sweep(std::string_view text, const std::string& file_name, const std::vector<std::string>& overrides) {
    return decode(text, file_name, overrides, std::filesystem::path(file_name).parent_path().string());
}

Sweep decode_resolved_sweep(std::string_view text, const std::string& file_name) {
    return decode(text, file_name, {}, std::nullopt);
}

Sweep load_sweep(const std::string& path, const std::vector<std::string>& overrides) {
    return decode_sweep(read_input_file(path), path, overrides);
}

}  // namespace millrace
