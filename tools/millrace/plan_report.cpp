#include "tools/millrace/plan_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "sim/run/result_document.h"
#include "tools/millrace/counted.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int document_version = 1;
constexpr std::size_t runner_ups_shown = 5;

struct ObjectiveText {
    PlanObjective objective;
    const char* name;
    const char* unit;
    const char* label;
};
constexpr std::array objectives = {
    ObjectiveText{PlanObjective::usd_to_target, "usd_to_target", "USD", "to the target"},
    ObjectiveText{PlanObjective::gpu_s_to_target, "gpu_s_to_target", "GPU-s", "to the target"},
    ObjectiveText{PlanObjective::usd_per_update, "usd_per_update", "USD", "per update"},
    ObjectiveText{PlanObjective::update_period_s, "update_period_s", "s", "per update"}};

const ObjectiveText& text_of(PlanObjective objective) {
    return *std::find_if(objectives.begin(), objectives.end(),
                         [&](const ObjectiveText& text) { return text.objective == objective; });
}

template <typename... Values>
std::string print(const char* format, Values... values) {
    std::array<char, 512> line{};
    std::snprintf(line.data(), line.size(), format, values...);
    return line.data();
}

/// Four significant digits.
std::string number(double value) {
    const double size = std::abs(value);
    if (size < 1e-12) {
        return "0";
    }
    if (size >= 1e7 || size < 1e-3) {
        return print("%.3e", value);
    }
    return print("%.*f", std::max(0, 3 - static_cast<int>(std::floor(std::log10(size)))), value);
}

std::string percent(double share) {
    return print("%+.1f %%", 100.0 * share);
}

Json design_json(const PlanDesign& design) {
    Json store = design.store == PlanDesign::Store::replay_buffer
                     ? Json{{"kind", "replay_buffer"}, {"capacity", design.size}}
                     : Json{{"kind", "transfer_queue"}, {"steps_ahead", design.size}};
    return {{"workers", design.workers},
            {"trainers", design.trainers},
            {"store", std::move(store)},
            {"weight_sync_every", design.sync_every}};
}

Json evaluation_json(const PlanEvaluation& evaluation) {
    Json json = {{"design", design_json(evaluation.design)}};
    if (!evaluation.error.empty()) {
        json["error"] = evaluation.error;
        return json;
    }
    json["replications"] = evaluation.runs.size();
    json["updates"] = evaluation.horizon.warmup_updates + evaluation.horizon.measured_updates;
    json["warmup_updates"] = evaluation.horizon.warmup_updates;
    for (const auto& [key, value] : evaluation.runs.front()) {
        json["metrics"][key] = estimate_json(key, evaluation.estimate_of(key));
    }
    return json;
}

Json alternatives_json(const std::vector<PlanAlternative>& alternatives) {
    Json list = Json::array();
    for (const PlanAlternative& other : alternatives) {
        Json json = {{"what", other.what}};
        json.update(evaluation_json(other.evaluation));
        if (other.evaluation.error.empty()) {
            json["objective"] = estimate_json("objective", other.objective);
            json["excess"] = estimate_json("excess", other.excess);
            json["meets_limits"] = other.feasible;
            json["tied"] = other.tied;
        }
        list.push_back(std::move(json));
    }
    return list;
}

bool asks_for_target(const PlanQuestion& question) {
    return question.objective == PlanObjective::usd_to_target || question.objective == PlanObjective::gpu_s_to_target;
}

std::string limits_text(const PlanQuestion& question) {
    std::string text;
    if (question.max_staleness) {
        text = "staleness/mean at most " + number(*question.max_staleness);
    }
    if (question.max_staleness_p99) {
        text +=
            (text.empty() ? "" : " and ") + std::string("staleness/p99 at most ") + number(*question.max_staleness_p99);
    }
    return text;
}

/// How long the clock runs to the target: reserved GPU-s over GPUs.
Estimate days_to_target(const PlanReport& report, const PlanEvaluation& best) {
    const std::int64_t gpus = best.design.workers + best.design.trainers;
    std::vector<double> days;
    for (const PlanMetrics& run : best.runs) {
        days.push_back(plan_objective(PlanObjective::gpu_s_to_target, report.calibration, gpus, run) /
                       static_cast<double>(gpus) / 86400.0);
    }
    return estimate(days);
}

std::string rows(const std::vector<PlanAlternative>& alternatives, std::size_t most, bool named) {
    std::string text;
    for (std::size_t i = 0; i < std::min(most, alternatives.size()); ++i) {
        const PlanAlternative& other = alternatives[i];
        const PlanEvaluation& evaluation = other.evaluation;
        text += "  ";
        if (named) {
            text += print("%-42s", other.what.c_str());
        }
        text += print("%-70s", describe(evaluation.design).c_str());
        if (!evaluation.error.empty()) {
            text += "  cannot run: " + evaluation.error + "\n";
            continue;
        }
        text += print(" %9s +- %.1f  staleness %-6s", percent(other.excess.mean).c_str(),
                      100.0 * other.excess.half_width.value_or(0.0), number(evaluation.mean("staleness/mean")).c_str());
        text += !other.feasible ? "  beyond a limit" : other.tied ? "  tied" : "";
        text.erase(text.find_last_not_of(' ') + 1);
        text += "\n";
    }
    return text;
}

}  // namespace

const char* objective_name(PlanObjective objective) {
    return text_of(objective).name;
}

PlanObjective objective_of(const std::string& name) {
    return std::find_if(objectives.begin(), objectives.end(),
                        [&](const ObjectiveText& text) { return name == text.name; })
        ->objective;
}

std::string PlanReport::answer() const {
    if (!plan.recommended) {
        std::string text =
            std::string("No design on ") + (question.at_most ? "at most " : "") + counted(question.gpus, "GPU");
        const std::string limits = limits_text(question);
        text += limits.empty() ? " can run" : " keeps " + limits;
        if (plan.nearest) {
            text += ". The nearest found is " + describe(plan.nearest->design) + ", with a mean staleness of " +
                    number(plan.nearest->mean("staleness/mean")) + " and a p99 of " +
                    number(plan.nearest->mean("staleness/p99"));
        } else if (!plan.impossible.empty()) {
            text += ": " + plan.impossible.front().reason;
        }
        return text + ".";
    }
    const PlanEvaluation& best = *plan.recommended;
    const PlanDesign& design = best.design;
    std::string text =
        "Let " + counted(design.workers, "GPU") + " generate and " + std::to_string(design.trainers) + " train. ";
    if (design.store == PlanDesign::Store::replay_buffer) {
        text += "Keep the " + std::to_string(design.size) + " freshest rollouts in a replay buffer (" +
                number(static_cast<double>(design.size) /
                       static_cast<double>(calibration.measured.pipeline.trainers.batch)) +
                " batches): each is used " + number(best.mean("replay/mean")) + " times on average. ";
    } else {
        text += "Use each rollout once, through a transfer queue, and let generation run " +
                counted(design.size, "step") + " ahead. ";
    }
    text += design.sync_every == 1 ? "Send the weights after every update."
                                   : "Send the weights every " + std::to_string(design.sync_every) + " updates.";
    return text;
}

std::string PlanReport::why_variance() const {
    if (!calibration.measured.pipeline.noise) {
        return "The calibration has no noise, so staleness and reuse cost nothing here: the plan is the fastest "
               "pipeline, not the best one.";
    }
    const double both = variance.staleness * variance.reuse;
    return "A batch has " + number(variance.all) +
           " times the variance of an on-policy batch of its size, so a target takes as many times the updates. "
           "Staleness alone would make it " +
           number(variance.staleness) + ", reuse alone " + number(variance.reuse) + " (repeats within a batch " +
           number(variance.repeats) + ", coupling the rest); together they multiply to " + number(both) + ".";
}

std::string PlanReport::equals_text() const {
    const std::string margin = print("%.1f %%", 100.0 * plan_indifference);
    if (plan.equals <= 1) {
        return "No other design is within " + margin + " of it.";
    }
    return std::to_string(plan.equals) + " designs are within " + margin +
           " of the best. Of such equals the simplest is recommended: a transfer queue rather than a replay buffer, "
           "then fewer steps ahead or a smaller buffer, then weights more often, then the lesser cost.";
}

std::vector<std::string> PlanReport::assumptions() const {
    std::vector<std::string> list;
    if (asks_for_target(question)) {
        list.push_back("a run on policy needs " + counted(calibration.target.on_policy_updates, "update") +
                       " to the target; its source: " + calibration.target.source);
    }
    for (const CalibrationSource& source : calibration.sources) {
        if (source.where == "assumed" || source.text.find("assumed") != std::string::npos) {
            list.push_back(source.path + ": " + source.text);
        }
    }
    const PipelineConfig& pipeline = calibration.measured.pipeline;
    if (!pipeline.noise) {
        list.push_back("the calibration has no noise: a stale or repeated rollout teaches as much as a fresh one");
    }
    if (!(pipeline.weight_sync.transfer_s.mean() > 0.0)) {
        list.push_back("weight transfers take no time");
    }
    if (!pipeline.reward) {
        list.push_back("rewards take no time");
    }
    list.push_back("no worker fails");
    return list;
}

Json plan_document(const PlanReport& report) {
    const PlanQuestion& question = report.question;
    const Plan& plan = report.plan;
    Json document;
    document["millrace_plan"] = document_version;
    document["calibration"] = Json::parse(report.calibration.resolved_json);
    Json& asked = document["question"];
    asked = {{"gpus", question.gpus}, {"at_most", question.at_most}, {"minimize", objective_name(question.objective)}};
    if (question.max_staleness) {
        asked["max_staleness"] = *question.max_staleness;
    }
    if (question.max_staleness_p99) {
        asked["max_staleness_p99"] = *question.max_staleness_p99;
    }
    asked["seed"] = question.seed;
    asked["steps_ahead"] = question.grid.steps_ahead;
    asked["capacities"] = question.grid.capacities;
    asked["weight_sync_every"] = question.grid.sync_every;

    Json& search = document["search"];
    search = {{"designs", plan.designs}, {"ruled_out", plan.ruled_out}, {"impossible", Json::array()}};
    for (const PlanRefusal& refusal : plan.impossible) {
        search["impossible"].push_back(
            {{"designs", refusal.designs}, {"reason", refusal.reason}, {"example", design_json(refusal.example)}});
    }
    search["simulated_over_bound"] = {
        {"least", plan.formula_error.least}, {"median", plan.formula_error.median}, {"most", plan.formula_error.most}};
    search["stages"] = Json::array();
    for (const PlanStage& stage : plan.stages) {
        search["stages"].push_back({{"name", stage.name},
                                    {"designs", stage.designs},
                                    {"updates", stage.updates},
                                    {"replications", stage.replications}});
    }

    document["assumptions"] = report.assumptions();
    document["answer"] = report.answer();
    document["recommended"] = nullptr;
    if (!plan.recommended) {
        document["nearest"] = plan.nearest ? evaluation_json(*plan.nearest) : Json();
        return document;
    }
    const PlanEvaluation& best = *plan.recommended;
    document["recommended"] = evaluation_json(best);
    document["recommended"]["objective"] = estimate_json("objective", plan.objective);
    if (asks_for_target(question)) {
        document["recommended"]["days_to_target"] = estimate_json("days_to_target", days_to_target(report, best));
    }
    document["recommended"]["equals"] = plan.equals;
    document["why"] = {{"period", report.binds},
                       {"variance",
                        {{"all", report.variance.all},
                         {"staleness", report.variance.staleness},
                         {"reuse", report.variance.reuse},
                         {"repeats", report.variance.repeats},
                         {"text", report.why_variance()}}}};
    document["runner_ups"] = alternatives_json(plan.runner_ups);
    document["references"] = alternatives_json(plan.references);
    document["deviations"] = alternatives_json(plan.deviations);
    document["scenario"] = Json::parse(report.scenario);
    return document;
}

std::string plan_table(const PlanReport& report) {
    const Plan& plan = report.plan;
    const PlanQuestion& question = report.question;
    const ObjectiveText& objective = text_of(question.objective);
    std::string text = report.calibration.name + ": the least " + objective.name + " on " +
                       (question.at_most ? "at most " : "") + counted(question.gpus, "GPU");
    const std::string limits = limits_text(question);
    text += (limits.empty() ? "" : ", " + limits) + "\n\n" + report.answer() + "\n";
    if (plan.recommended) {
        const PlanEvaluation& best = *plan.recommended;
        text += "\n  " + number(plan.objective.mean) + " +- " + number(plan.objective.half_width.value_or(0.0)) + " " +
                objective.unit + " " + objective.label + "\n";
        if (asks_for_target(question)) {
            const Estimate days = days_to_target(report, best);
            text += print("  %-10s +- %-9s days to the target\n", number(days.mean).c_str(),
                          number(days.half_width.value_or(0.0)).c_str());
        }
        const std::pair<const char*, const char*> lines[] = {
            {"time/update_period_s", "s per update"},
            {"compute/reserved_gpu_s_per_update", "reserved GPU-s per update"},
            {"compute/usd_per_update", "USD per update"},
            {"noise/relative_variance", "times the variance of an on-policy batch"},
            {"staleness/mean", "versions of staleness on average"},
            {"staleness/p99", "versions at most, for 99 % of the samples"},
            {"replay/mean", "uses per rollout"},
            {"workers/busy", "of the workers' time busy"},
            {"trainers/busy", "of the trainers' time busy"}};
        for (const auto& [key, what] : lines) {
            const Estimate value = best.estimate_of(key);
            if (value.replications > 0) {
                text += print("  %-10s +- %-9s %s\n", number(value.mean).c_str(),
                              number(value.half_width.value_or(0.0)).c_str(), what);
            }
        }
        text += "\n" + report.equals_text() + "\n";
        text += "\nWhy this fast: " + report.binds + "\n";
        text += "What it costs in noise: " + report.why_variance() + "\n";
        text += std::string("\nOne step away, the rest kept (") + objective.name + ", % more):\n" +
                rows(plan.deviations, plan.deviations.size(), true);
        if (!plan.references.empty()) {
            text += "\nFor comparison:\n" + rows(plan.references, plan.references.size(), true);
        }
        text += "\nRunner-ups:\n" + rows(plan.runner_ups, runner_ups_shown, false);
    }
    text += print(
        "\n%lld designs, of which bounds ruled out %lld; simulations of the others came to %s to %s times their "
        "bound (median %s)",
        static_cast<long long>(plan.designs), static_cast<long long>(plan.ruled_out),
        number(plan.formula_error.least).c_str(), number(plan.formula_error.most).c_str(),
        number(plan.formula_error.median).c_str());
    text += ".\n";
    for (const PlanRefusal& refusal : plan.impossible) {
        text += counted(refusal.designs, "design") + " cannot run, such as " + describe(refusal.example) + ": " +
                refusal.reason + "\n";
    }
    text += "\nWhat it takes for granted:\n";
    for (const std::string& assumption : report.assumptions()) {
        text += "  " + assumption + "\n";
    }
    return text;
}

}  // namespace millrace
