#include "tools/millrace/explain_command.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "sim/explain/explain.h"
#include "sim/pipeline/admission.h"
#include "sim/pipeline/pipeline.h"
#include "sim/run/result_document.h"
#include "sim/scenario/decode.h"
#include "sim/scenario/diagnostics.h"
#include "tools/millrace/interrupt.h"
#include "tools/millrace/progress_line.h"
#include "tools/millrace/result_files.h"
#include "tools/millrace/safe_file.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int document_version = 1;

template <typename... Values>
std::string print(const char* format, Values... values) {
    char line[512];
    std::snprintf(line, sizeof line, format, values...);
    return line;
}

/// One step up in one number of the scenario.
struct Change {
    std::string what;                    ///< "one more worker"
    std::vector<std::string> overrides;  ///< that make it
    std::string not_possible;            ///< why it cannot be run; empty: it can
    std::optional<RunResult> result;
};

std::string set(const char* path, std::int64_t value) {
    return path + ("=" + std::to_string(value));
}

std::vector<Change> changes_of(const PipelineConfig& config) {
    const std::int64_t batch = config.trainers.batch;
    std::vector<Change> changes{
        {"one more worker", {set("workers.count", config.workers.count + 1)}, "", {}},
        {"one more trainer", {set("trainers.count", config.trainers.count + 1)}, "", {}},
        {"one more slot per worker", {set("workers.slots", config.workers.slots + 1)}, "", {}},
        {"room for one more batch", {set("store.capacity", capacity(config.store) + batch)}, "", {}}};
    if (config.admission) {
        PipelineConfig ahead = config;
        ++ahead.admission->steps_ahead;
        changes.push_back(
            {"one more step ahead", {set("admission.steps_ahead", ahead.admission->steps_ahead)}, "", {}});
        // Where the queue held all that is admitted it still should.
        if (std::holds_alternative<TransferQueueConfig>(config.store) &&
            capacity(config.store) >= opening_tokens(config) && capacity(config.store) < opening_tokens(ahead)) {
            changes.back().overrides.push_back(set("store.capacity", opening_tokens(ahead)));
        }
    }
    return changes;
}

/// The metrics that the changes are weighed by.
std::vector<std::string> weighed(const Scenario& scenario) {
    return {"time/update_period_s", scenario.price ? "compute/usd_per_update" : "compute/reserved_gpu_s_per_update",
            "staleness/mean"};
}

class Explainer {
   public:
    explicit Explainer(const ExplainOptions& options)
        : options_(options), scenario_(load_scenario(options.scenario.file, options.scenario.overrides)) {}

    void analyse() { explained_ = explain_period(scenario_.pipeline); }

    /// False after an interrupt.
    bool simulate() {
        const InterruptGuard guard;
        ProgressLine progress("simulating", !options_.quiet);
        changes_ = changes_of(scenario_.pipeline);
        const double runs = 1.0 + static_cast<double>(changes_.size());
        double done = 0.0;
        const auto run = [&](const Scenario& scenario) {
            RunOptions how;
            how.jobs = options_.jobs;
            how.interrupt = &interrupted();
            how.progress = [&](double share) { progress.show((done + share) / runs); };
            RunResult result = run_replications(scenario, how);
            ++done;
            return result;
        };
        base_ = run(scenario_);
        for (Change& change : changes_) {
            if (interrupted()) {
                return false;
            }
            std::vector<std::string> overrides = options_.scenario.overrides;
            overrides.insert(overrides.end(), change.overrides.begin(), change.overrides.end());
            // The same updates of every replication are compared.
            overrides.push_back(set("horizon.warmup_updates", base_.warmup_updates));
            try {
                change.result = run(load_scenario(options_.scenario.file, overrides));
            } catch (const ScenarioError& error) {
                change.not_possible = error.problems().front().message;
            } catch (const PipelineStuck& stuck) {
                change.not_possible = stuck.what();
            }
        }
        return !interrupted();
    }

    void write_graph(std::ostream& out) const { write_dot(out, explained_.pipeline.graph, explained_.critical); }
    std::string table() const;
    std::string json() const;

   private:
    const Estimate& simulated_period() const { return base_.metrics.at("time/update_period_s"); }
    double ratio() const { return simulated_period().mean / explained_.period_s; }
    /// What the distance between simulation and graph is due to.
    std::string ratio_means() const {
        const PipelineGraph& pipeline = explained_.pipeline;
        return pipeline.exact()                  ? "the graph is exact"
               : pipeline.approximations.empty() ? "price of variability"
                                                 : "price of variability, and what the graph leaves out";
    }
    std::string changes_table() const;

    const ExplainOptions& options_;
    Scenario scenario_;
    PeriodExplanation explained_;
    RunResult base_;
    std::vector<Change> changes_;
};

std::string with_interval(const Estimate& estimate, const char* format) {
    return print(format, estimate.mean) + (estimate.half_width ? print(" +- %.2g", *estimate.half_width) : "");
}

std::string Explainer::table() const {
    const PipelineGraph& pipeline = explained_.pipeline;
    std::string out = scenario_.name + ": " + explained_.binds + "\n\n";
    out += print("  %-42s %12.5g s   %s\n", "update period, every time at its mean", explained_.period_s,
                 pipeline.approximations.empty() ? "exact for constant times" : "a lower bound for constant times");
    out += print("  %-42s %12.5g s   %s\n", "floor for times of any spread", explained_.floor_s,
                 "a lower bound for any times with these means");
    out += print("  %-42s %12s s\n", "simulated", with_interval(simulated_period(), "%.5g").c_str());
    out += print("  %-42s %12.4g     %s\n", "simulated / every time at its mean", ratio(), ratio_means().c_str());
    for (const std::string& reason : pipeline.approximations) {
        out += "  Not in the graph: " + reason + ".\n";
    }

    out += print("\nThe critical cycle (%lld %s):\n", static_cast<long long>(explained_.cycle_updates),
                 explained_.cycle_updates == 1 ? "update" : "updates");
    for (const CyclePart& part : explained_.parts) {
        out +=
            print("  %-28s %6lld x   %12.5g s   %5.1f %%\n", part.activity.c_str(), static_cast<long long>(part.times),
                  part.duration_s, 100.0 * part.duration_s / explained_.critical.duration_s);
    }
    const auto share = [&](const char* metric) { return 100.0 * base_.metrics.at(metric).mean; };
    out += print(
        "\nSimulated, in %% of the time: workers busy %.1f, starved %.1f, blocked %.1f, paused %.1f; trainers busy "
        "%.1f, waiting %.1f, stalled %.1f\n",
        share("workers/busy"), share("workers/starved"), share("workers/blocked"), share("workers/paused"),
        share("trainers/busy"), share("trainers/waiting"), share("trainers/stalled"));
    return out + changes_table();
}

std::string Explainer::changes_table() const {
    const std::vector<std::string> metrics = weighed(scenario_);
    std::vector<std::vector<std::string>> rows = {{""}, {"as it is"}};
    for (const std::string& metric : metrics) {
        rows[0].push_back(metric);
        rows[1].push_back(with_interval(base_.metrics.at(metric), "%.5g"));
    }
    for (const Change& change : changes_) {
        std::string name = change.what + " (";
        for (const std::string& override : change.overrides) {
            name += (name.back() == '(' ? "" : ", ") + override;
        }
        rows.push_back({name + ")"});
        if (!change.result) {
            rows.back().push_back("not possible: " + change.not_possible);
            continue;
        }
        for (const std::string& metric : metrics) {
            const auto difference = paired_difference(base_, *change.result, metric);
            const bool same = difference && difference->mean == 0.0 && difference->half_width.value_or(0.0) == 0.0;
            rows.back().push_back(same ? "no change" : difference ? with_interval(*difference, "%+.4g") : "undefined");
        }
    }
    std::size_t widest = 0;
    for (const std::vector<std::string>& row : rows) {
        widest = std::max(widest, row.front().size());
    }
    std::string out = "\nWhat would change (simulated with the same random numbers, 95 % intervals):\n";
    for (const std::vector<std::string>& row : rows) {
        std::string line = print("  %-*s", static_cast<int>(widest), row.front().c_str());
        for (std::size_t column = 1; column < row.size(); ++column) {
            line += "  " + row[column] + std::string(32 - std::min<std::size_t>(row[column].size(), 32), ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

std::string Explainer::json() const {
    const PipelineGraph& pipeline = explained_.pipeline;
    Json document;
    document["millrace_explain"] = document_version;
    document["scenario"] = Json::parse(scenario_.resolved_json);
    document["binds"] = explained_.binds;
    Json& graph = document["graph"];
    graph["period_s"] = explained_.period_s;
    graph["exact"] = pipeline.exact();
    graph["constant_times"] = pipeline.constant_times;
    graph["left_out"] = pipeline.approximations;
    graph["floor_s"] = explained_.floor_s;
    if (explained_.rollouts_per_update) {
        graph["rollouts_per_update"] = *explained_.rollouts_per_update;
    }
    graph["vertices"] = pipeline.graph.vertices.size();
    graph["edges"] = pipeline.graph.edges.size();
    Json& cycle = graph["critical_cycle"];
    cycle["updates"] = explained_.cycle_updates;
    cycle["duration_s"] = explained_.critical.duration_s;
    cycle["parts"] = Json::array();
    for (const CyclePart& part : explained_.parts) {
        cycle["parts"].push_back({{"activity", part.activity}, {"times", part.times}, {"duration_s", part.duration_s}});
    }
    cycle["firings"] = Json::array();
    for (const std::size_t edge : explained_.critical.edges) {
        cycle["firings"].push_back(pipeline.graph.vertices[pipeline.graph.edges[edge].from]);
    }
    Json& simulated = document["simulated"];
    for (const std::string& metric : weighed(scenario_)) {
        simulated[metric] = estimate_json(metric, base_.metrics.at(metric));
    }
    for (const auto& [metric, estimate] : base_.metrics) {
        if (metric.starts_with("workers/") || metric.starts_with("trainers/")) {
            simulated[metric] = estimate_json(metric, estimate);
        }
    }
    document["simulated_over_graph"] = ratio();
    document["changes"] = Json::array();
    for (const Change& change : changes_) {
        Json entry{{"what", change.what}, {"set", change.overrides}};
        if (!change.result) {
            entry["not_possible"] = change.not_possible;
        } else {
            entry["difference"] = Json::object();
            for (const std::string& metric : weighed(scenario_)) {
                if (const auto difference = paired_difference(base_, *change.result, metric)) {
                    entry["difference"][metric] = estimate_json(metric, *difference);
                }
            }
        }
        document["changes"].push_back(std::move(entry));
    }
    document["warnings"] = base_.warnings;
    return document.dump(2) + "\n";
}

}  // namespace

int explain_command(const ExplainOptions& options) {
    Explainer explainer(options);
    ResultFiles("", options.dot, options.scenario.file, {"the scenario", "the graph"});
    const auto dot = options.dot.empty() ? nullptr : std::make_unique<SafeFile>(options.dot);
    explainer.analyse();
    if (!explainer.simulate()) {
        std::cerr << "Interrupted before everything was simulated: there is nothing to report.\n";
        return exit_interrupted;
    }
    std::cout << (options.format == "json" ? explainer.json() : explainer.table());
    if (dot) {
        explainer.write_graph(dot->stream());
        dot->commit();
    }
    std::cout.flush();
    if (!std::cout) {
        throw std::runtime_error("could not write the result to standard output");
    }
    return exit_done;
}

}  // namespace millrace
