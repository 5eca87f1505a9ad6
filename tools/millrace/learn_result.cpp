#include "tools/millrace/learn_result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/metrics/estimate.h"
#include "sim/run/result_document.h"
#include "tools/millrace/counted.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int document_version = 1;

template <typename... Values>
std::string print(const char* format, Values... values) {
    std::array<char, 256> line{};
    std::snprintf(line.data(), line.size(), format, values...);
    return line.data();
}

std::string task_text(const TaskSettings& task) {
    const std::string size = std::to_string(task.size);
    switch (task.kind) {
        case TaskKind::sort:
            return "sorting " + size + " digits";
        case TaskKind::countdown:
            return "making a number of " + size + " others";
        case TaskKind::addition:
            return "adding numbers of up to " + counted(task.size, "digit");
    }
    return "";
}

/// "learner/pass@1" at the start is "learner/start_pass@1".
std::string start_key(std::string_view key) {
    const std::size_t name = key.find('/') + 1;
    return std::string(key.substr(0, name)) + "start_" + std::string(key.substr(name));
}

/// What the table shows, with the key and the decimals.
struct Shown {
    const char* title;
    const char* key;
};
constexpr std::array<Shown, 4> shown = {Shown{"pass@1", "learner/pass@1"}, Shown{"pass@16", "learner/pass@16"},
                                        Shown{"greedy", "learner/greedy"}, Shown{"entropy", "learner/entropy"}};

std::string cells(const std::array<double, 2 * shown.size()>& values) {
    std::string text;
    for (std::size_t column = 0; column < values.size(); ++column) {
        const std::string cell = std::isfinite(values[column]) ? print("%.3f", values[column]) : "-";
        text += print(column % 2 == 0 ? "%10s" : "%7s", cell.c_str());
    }
    return text;
}

/// A statistic of every column of the table, over replications.
template <typename Statistic>
std::array<double, 2 * shown.size()> over_columns(const LearnCurve& curve, const Statistic& statistic) {
    std::array<double, 2 * shown.size()> row{};
    for (std::size_t i = 0; i < shown.size(); ++i) {
        row[2 * i] = statistic(curve.at_start(shown[i].key));
        row[2 * i + 1] = statistic(curve.at_end(shown[i].key));
    }
    return row;
}

/// What somebody should know before believing the numbers: full sentences.
std::vector<std::string> warnings_of(const LearnCurve& curve) {
    const std::vector<double> trained = curve.at_end("learner/trained_tokens");
    const bool none = std::all_of(trained.begin(), trained.end(), [](double tokens) { return tokens == 0.0; });
    if (curve.last_update() == 0 || !none) {
        return {};
    }
    return {
        "Nothing was learnt: in every group all answers had the same reward, so no update had a gradient. Change the "
        "warm start until some answers are right and some are not."};
}

}  // namespace

double quartile(std::vector<double> values, int number) {
    if (values.empty()) {
        return std::nan("");
    }
    std::sort(values.begin(), values.end());
    const double place = static_cast<double>(values.size() - 1) * number / 4.0;
    const auto below = static_cast<std::size_t>(place);
    const double beyond = place - static_cast<double>(below);
    // The next value may be infinite: without a share in the result it must not spoil it.
    return beyond == 0.0 ? values[below] : values[below] + beyond * (values[below + 1] - values[below]);
}

std::string learn_json(const LearnFile& file, const LearnOutcome& outcome) {
    Json document;
    document["millrace_learn_result"] = document_version;
    document["settings"] = Json::parse(file.resolved_json);
    document["metrics"] = Json::object();
    document["undefined"] = Json::object();
    const auto add = [&](const std::string& key, const std::vector<double>& values) {
        if (values.size() == static_cast<std::size_t>(file.replications)) {
            document["metrics"][key] = estimate_json(key, estimate(values));
        } else {
            document["undefined"][key] = "it is not a finite number: the model has diverged";
        }
    };
    for (const CurveColumn& column : curve_columns()) {
        if (column.is_metric) {
            add(std::string(column.key), outcome.curve.at_end(column.key));
        }
    }
    for (const Shown& one : shown) {
        add(start_key(one.key), outcome.curve.at_start(one.key));
    }
    document["theta_0"] = {{"hash", outcome.result.theta_0_hash}, {"parameters", outcome.start.parameters}};
    document["updates"] = outcome.curve.last_update();
    if (outcome.result.updates == outcome.curve.last_update()) {
        document["weights_hash"] = outcome.result.final_hash;  // else nothing here belongs to these weights
    }
    document["replications"] = file.replications;
    Json& curves = document["curves"] = Json::object();
    curves["update"] = outcome.curve.updates();
    for (const CurveColumn& column : curve_columns()) {
        Json& of_replications = curves[std::string(column.key)] = Json::array();
        for (std::int64_t replication = 0; replication < file.replications; ++replication) {
            of_replications.push_back(outcome.curve.series(column.key, replication));
        }
    }
    document["warnings"] = warnings_of(outcome.curve);
    document["interrupted"] = outcome.result.stopped;
    return document.dump(2) + "\n";
}

std::string learn_csv(const LearnOutcome& outcome) {
    std::string text = "update,replication";
    for (const CurveColumn& column : curve_columns()) {
        text += "," + std::string(column.key);
    }
    text += "\n";
    for (const LearnCurve::Row& row : outcome.curve.rows()) {
        text += row.at("update").dump() + "," + row.at("replication").dump();
        for (const CurveColumn& column : curve_columns()) {
            const auto& number = row.at(std::string(column.key));
            text += "," + (number.is_number() ? number.dump() : std::string());
        }
        text += "\n";
    }
    return text;
}

std::string learn_table(const LearnFile& file, const LearnOutcome& outcome) {
    const ModelSettings& model = file.learner.model;
    const LearnCurve& curve = outcome.curve;
    std::string text = file.name + ": " + task_text(file.learner.task) + " with a transformer of " +
                       std::to_string(outcome.start.parameters) + " parameters" +
                       print(" (%lld layer%s, width %lld)\n", static_cast<long long>(model.layers),
                             model.layers == 1 ? "" : "s", static_cast<long long>(model.width));
    text += print("%lld replications of %lld updates with batches of B = %lld in groups of G = %lld\n",
                  static_cast<long long>(file.replications), static_cast<long long>(curve.last_update()),
                  static_cast<long long>(file.batch), static_cast<long long>(file.group_size));
    text += "theta_0 is " + outcome.result.theta_0_hash;
    text += outcome.start.supervised_updates > 0
                ? ", made by " + std::to_string(outcome.start.supervised_updates) + " supervised updates" +
                      print(" in %.1f s\n\n", outcome.warm_start_s)
                : ", from " + file.learner.warm_start.checkpoint.value_or("a file") + "\n\n";

    text += print("%-12s", "");
    for (const Shown& one : shown) {
        text += print("%17s", one.title);
    }
    text += print("\n%-12s", "replication");
    for (std::size_t i = 0; i < shown.size(); ++i) {
        text += print("%10s%7s", "start", "end");
    }
    text += "\n";
    for (std::int64_t replication = 0; replication < file.replications; ++replication) {
        std::array<double, 2 * shown.size()> row{};
        for (std::size_t i = 0; i < shown.size(); ++i) {
            const auto series = curve.series(shown[i].key, replication);
            row[2 * i] = series.front().is_number() ? series.front().get<double>() : std::nan("");
            row[2 * i + 1] = series.back().is_number() ? series.back().get<double>() : std::nan("");
        }
        text += print("%-12lld", static_cast<long long>(replication)) + cells(row) + "\n";
    }
    if (file.replications > 1) {
        constexpr std::array<const char*, 3> names = {"quartile 1", "median", "quartile 3"};
        text += "\n";
        for (const int number : {2, 1, 3}) {
            text += print("%-12s", names[static_cast<std::size_t>(number - 1)]) +
                    cells(over_columns(curve, [&](const std::vector<double>& all) { return quartile(all, number); })) +
                    "\n";
        }
    }
    text += "\n";
    if (outcome.updates_made > 0) {
        const double rate = static_cast<double>(outcome.updates_made) / outcome.learning_s;
        text += print("%lld updates took %.1f s, evaluations included: %.0f updates/s",
                      static_cast<long long>(outcome.updates_made), outcome.learning_s, rate);
        text += file.replications > 1
                    ? print(" of all replications, %.0f of one\n", rate * static_cast<double>(file.replications))
                    : "\n";
    }
    text += "Computed on " + outcome.backend + ".\n";
    for (const std::string& warning : warnings_of(curve)) {
        text += "\nWarning: " + warning + "\n";
    }
    if (outcome.result.stopped) {
        text += print("\nInterrupted: this is what was evaluated last, after %lld of %lld updates.\n",
                      static_cast<long long>(curve.last_update()), static_cast<long long>(file.updates));
    }
    return text;
}

}  // namespace millrace
