#include "tools/millrace/pipeline_curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "model/evaluation/first_passage.h"
#include "tools/millrace/learn_curve.h"
#include "tools/millrace/learn_result.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double nearly_the_best = 0.98;
constexpr std::size_t last_evaluations = 3;

Json row_of(std::int64_t replication, std::size_t replica, const CurvePoint& point) {
    Json row;
    row["replication"] = replication;
    row["replica"] = replica;
    row["update"] = point.update;
    row["compute/units"] = point.units;
    row["compute/active_gpu_s"] = point.active_gpu_s;
    row["compute/reserved_gpu_s"] = point.reserved_gpu_s;
    row["time/wall_s"] = point.at_s;
    row["staleness/mean"] = point.staleness;
    row["replay/mean"] = point.replay;
    put_evaluation(row, point.evaluation[replica]);
    put_statistics(row, point.update > 0 ? std::optional(point.statistics[replica]) : std::nullopt);
    return row;
}

/// Median and quartiles, in which a model that never gets there counts as infinitely late.
Json quartiles_of(const std::vector<double>& values) {
    Json json;
    for (const auto& [name, quarter] : {std::pair{"quartile_1", 1}, {"median", 2}, {"quartile_3", 3}}) {
        json[name] = json_number(quartile(values, quarter));
    }
    return json;
}

std::string cell(double value, const char* format) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, value);
    return std::isfinite(value) ? text.data() : "never";
}

std::string median_and_quartiles(const std::vector<double>& values, const char* format) {
    return cell(quartile(values, 2), format) + " [" + cell(quartile(values, 1), format) + ", " +
           cell(quartile(values, 3), format) + "]";
}

}  // namespace

// ---- one model ------------------------------------------------------------------------------------------------------

std::vector<double> ModelCurve::column(std::string_view key) const {
    std::vector<double> values;
    for (const Row& row : rows_) {
        const Row& value = row.at(std::string(key));
        values.push_back(value.is_number() ? value.get<double>() : std::nan(""));
    }
    return values;
}

double ModelCurve::at_end(std::string_view key) const {
    const std::vector<double> values = column(key);
    const std::size_t after_the_start = std::max<std::size_t>(1, values.size() - 1);
    const std::size_t count = std::min(last_evaluations, after_the_start);
    return std::accumulate(values.end() - static_cast<std::ptrdiff_t>(count), values.end(), 0.0) /
           static_cast<double>(count);
}

double ModelCurve::units_to(double target_pass_at_1) const {
    return first_passage(column("compute/units"), smoothed(column("learner/pass@1")), target_pass_at_1).value_or(never);
}

double ModelCurve::units_to_98_percent_of_best() const {
    const std::vector<double> pass = smoothed(column("learner/pass@1"));
    const auto best = std::ranges::max_element(pass);
    if (best == pass.begin()) {
        return never;
    }
    return *first_passage(column("compute/units"), pass, nearly_the_best * *best);
}

std::map<std::string, double> ModelCurve::metrics(double target_pass_at_1) const {
    std::map<std::string, double> metrics;
    for (const char* key :
         {"learner/pass@1", "learner/pass@4", "learner/pass@16", "learner/greedy", "learner/entropy",
          "updates/ratio_deviation", "updates/clipped_fraction", "updates/ess_token", "updates/ess_sequence"}) {
        metrics[key] = at_end(key);
    }
    const std::vector<double> greedy = column("learner/greedy");
    metrics["learner/greedy_at_start"] = greedy.front();
    metrics["learner/greedy_largest_drop"] = largest_drop(greedy);
    metrics["learner/compute_to_98_percent_of_best"] = units_to_98_percent_of_best();

    metrics["learner/compute_spent"] = column("compute/units").back();

    const double to_target = units_to(target_pass_at_1);
    const auto at_target = [&](const std::vector<double>& values) {
        return std::isfinite(to_target) ? value_at(column("compute/units"), values, to_target) : never;
    };
    metrics["learner/compute_to_target"] = to_target;
    metrics["learner/active_gpu_s_to_target"] = at_target(column("compute/active_gpu_s"));
    metrics["learner/reserved_gpu_s_to_target"] = at_target(column("compute/reserved_gpu_s"));
    metrics["learner/updates_to_target"] = at_target(column("update"));
    // Policies are best compared where they are equally good: pass@k and entropy change with accuracy.
    metrics["learner/greedy_at_target"] = at_target(smoothed(column("learner/greedy")));
    metrics["learner/pass@16_at_target"] = at_target(smoothed(column("learner/pass@16")));
    metrics["learner/entropy_at_target"] = at_target(smoothed(column("learner/entropy")));
    return metrics;
}

// ---- all models -----------------------------------------------------------------------------------------------------

PipelineCurves::PipelineCurves(const Scenario& scenario)
    : scenario_(scenario),
      target_(scenario.learner->target_pass_at_1),
      models_(static_cast<std::size_t>(scenario.replications * scenario.learner->replicas)),
      complete_(static_cast<std::size_t>(scenario.replications)) {}

std::string PipelineCurves::add(std::int64_t replication, const CurvePoint& point) {
    std::string text;
    for (std::size_t replica = 0; replica < point.evaluation.size(); ++replica) {
        Model& model = models_[static_cast<std::size_t>(replication) * point.evaluation.size() + replica];
        model.replication = replication;
        model.curve.add(row_of(replication, replica, point));
        text += model.curve.rows().back().dump() + "\n";
    }
    return text;
}

std::string PipelineCurves::text() const {
    std::string text;
    for (const Model& model : models_) {
        for (const ModelCurve::Row& row : model.curve.rows()) {
            text += row.dump() + "\n";
        }
    }
    return text;
}

template <typename Number>
std::vector<double> PipelineCurves::of_all(const Number& number) const {
    std::vector<double> values;
    for (const Model& model : models_) {
        if (ended(model)) {
            values.push_back(number(model.curve));
        }
    }
    return values;
}

void PipelineCurves::put_into(RunResult& result) const {
    const auto replicas = static_cast<std::size_t>(scenario_.learner->replicas);
    std::map<std::string, std::vector<double>> by_key;  ///< per model
    for (const Model& model : models_) {
        if (ended(model)) {
            for (const auto& [key, value] : model.curve.metrics(target_)) {
                by_key[key].push_back(value);
            }
        }
    }
    for (const auto& [key, values] : by_key) {
        std::vector<double>& samples = result.samples[key];
        for (auto first = values.begin(); first != values.end(); first += static_cast<std::ptrdiff_t>(replicas)) {
            const double sum = std::accumulate(first, first + static_cast<std::ptrdiff_t>(replicas), 0.0);
            samples.push_back(sum / static_cast<double>(replicas));
        }
        const auto reached = std::ranges::count_if(values, [](double value) { return std::isfinite(value); });
        if (reached == static_cast<std::ptrdiff_t>(values.size())) {
            result.metrics[key] = estimate(samples);
        } else {
            result.undefined[key] = "it has a finite value for " + std::to_string(reached) + " of " +
                                    std::to_string(values.size()) + " seeds";
        }
    }
    put_budget_into(result);
    if (!by_key.empty()) {
        warn(result);
    }
}

void PipelineCurves::put_budget_into(RunResult& result) const {
    const char* key = "learner/compute_budget";
    if (!scenario_.horizon.units) {
        result.undefined[key] = "the scenario has no horizon.units";
        return;
    }
    std::vector<double> spent = of_all([](const ModelCurve& curve) { return curve.column("compute/units").back(); });
    if (spent.empty()) {
        return;
    }
    // The budget itself, as long as it was spent: runs that end at the same budget are ties, not a few units apart.
    if (*std::ranges::min_element(spent) < *scenario_.horizon.units) {
        result.undefined[key] = "horizon.updates ended the run before the compute of horizon.units was spent";
        return;
    }
    result.metrics[key] = closed_form(*scenario_.horizon.units);
    result.samples[key].assign(spent.size() / static_cast<std::size_t>(scenario_.learner->replicas),
                               *scenario_.horizon.units);
}

void PipelineCurves::warn(RunResult& result) const {
    const double budget = scenario_.horizon.units.value_or(0.0);
    const std::vector<double> spent =
        of_all([](const ModelCurve& curve) { return curve.column("compute/units").back(); });
    const double least = *std::ranges::min_element(spent);
    if (least < budget) {
        result.warnings.push_back(
            "Learning ended after horizon.updates = " + std::to_string(scenario_.horizon.updates) + " updates, at " +
            cell(least, "%.0f") + " of the " + cell(budget, "%.0f") +
            " units of compute in horizon.units: raise horizon.updates to compare it with others.");
    }
    // Worse than at the start by more than chance, which is two standard errors of a share over so many prompts; and
    // greedy accuracy by more than the dip of .02 to .05 with which runs begin that go well (docs/findings.md).
    struct WatchedShare {
        const char* key;
        std::int64_t prompts;
        double harmless_drop;
    };
    const EvaluationSettings& evaluation = scenario_.learner->evaluation;
    const WatchedShare shares[] = {{"learner/greedy", evaluation.greedy_prompts, 0.1},
                                   {"learner/pass@1", evaluation.sampled_prompts, 0.0}};
    for (const auto& [key, prompts, harmless_drop] : shares) {
        const double start = quartile(of_all([&](const ModelCurve& curve) { return curve.column(key).front(); }), 2);
        const double end = quartile(of_all([&](const ModelCurve& curve) { return curve.at_end(key); }), 2);
        const double chance = 2.0 * std::sqrt(start * (1.0 - start) / static_cast<double>(prompts));
        if (end < start - std::max(chance, harmless_drop)) {
            result.warnings.push_back("The policy has become worse: " + std::string(key) + " was " +
                                      cell(start, "%.3f") + " at the start and is " + cell(end, "%.3f") +
                                      " at the end (medians over models). Lower learner.optimizer.learning_rate, or "
                                      "train on fresher rollouts.");
            return;
        }
    }
}

// ---- for people and files -------------------------------------------------------------------------------------------

Json PipelineCurves::models() const {
    Json models = Json::array();
    for (const Model& model : models_) {
        if (model.curve.empty()) {
            continue;
        }
        const ModelCurve::Row& first = model.curve.rows().front();
        Json json;
        json["replication"] = first.at("replication");
        json["replica"] = first.at("replica");
        json["compute_to_target"] = json_number(model.curve.units_to(target_));
        json["compute_to_98_percent_of_best"] = json_number(model.curve.units_to_98_percent_of_best());
        Json& curve = json["curve"] = Json::object();
        for (const auto& [key, value] : first.items()) {
            if (key == "replication" || key == "replica") {
                continue;
            }
            for (const ModelCurve::Row& row : model.curve.rows()) {
                curve[key].push_back(row.at(key));
            }
        }
        models.push_back(std::move(json));
    }
    return models;
}

Json PipelineCurves::quartiles() const {
    return {
        {"compute_to_target", quartiles_of(of_all([&](const ModelCurve& curve) { return curve.units_to(target_); }))},
        {"compute_to_98_percent_of_best",
         quartiles_of(of_all([](const ModelCurve& curve) { return curve.units_to_98_percent_of_best(); }))},
        {"pass@1", quartiles_of(of_all([](const ModelCurve& curve) { return curve.at_end("learner/pass@1"); }))}};
}

std::string PipelineCurves::table() const {
    std::string text =
        "seed     updates    units   pass@1 start    end   pass@16    greedy   entropy   units to pass@1 " +
        cell(target_, "%.2f") + "\n";
    for (std::size_t i = 0; i < models_.size(); ++i) {
        const ModelCurve& curve = models_[i].curve;
        if (curve.empty()) {
            continue;
        }
        std::array<char, 160> line{};
        std::snprintf(line.data(), line.size(), "%-8zu %7lld %8.0f %14.3f %6.3f %9.3f %9.3f %9.3f %22s%s\n", i,
                      curve.rows().back().at("update").get<long long>(), curve.column("compute/units").back(),
                      curve.column("learner/pass@1").front(), curve.at_end("learner/pass@1"),
                      curve.at_end("learner/pass@16"), curve.at_end("learner/greedy"), curve.at_end("learner/entropy"),
                      cell(curve.units_to(target_), "%.0f").c_str(), ended(models_[i]) ? "" : "   (stopped)");
        text += line.data();
    }
    const auto pass_at_1 = of_all([](const ModelCurve& curve) { return curve.at_end("learner/pass@1"); });
    if (pass_at_1.size() > 1) {
        text += "median   pass@1 " + median_and_quartiles(pass_at_1, "%.3f") + ", units to the target " +
                median_and_quartiles(of_all([&](const ModelCurve& curve) { return curve.units_to(target_); }), "%.0f") +
                "; in brackets the quartiles over seeds\n";
    }
    return text + "Ends are means of the last three evaluations";
}

}  // namespace millrace
