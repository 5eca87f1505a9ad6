#include "sim/sweep/design_record.h"

#include <algorithm>

#include "sim/pareto/pareto_front.h"
#include "sim/scenario/diagnostics.h"

namespace millrace {
namespace {

[[noreturn]] void refuse(const std::string& file_name, const std::string& what) {
    ScenarioProblem problem;
    problem.source = file_name;
    problem.message = what;
    problem.rendered = file_name + ": error: " + what;
    throw ScenarioError({problem});
}

/// Replications before this block have no value of a metric that appears in it for the first time, and the other way
/// round.
void append(DesignRecord& record, const BlockRow& row) {
    record.warmup_updates = record.replications == 0 ? row.warmup_updates : record.warmup_updates;
    for (const auto& [key, values] : row.metrics) {
        auto& all = record.metrics[key];
        all.resize(static_cast<std::size_t>(record.replications));
        all.insert(all.end(), values.begin(), values.end());
    }
    record.replications += row.replications;
    for (auto& [key, values] : record.metrics) {
        values.resize(static_cast<std::size_t>(record.replications));
    }
    record.undefined.insert(row.undefined.begin(), row.undefined.end());
}

}  // namespace

std::vector<DesignRecord> collect_records(const Sweep& sweep, const RowCollection& rows, const std::string& file_name) {
    std::vector<DesignRecord> records(sweep.designs.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        DesignRecord& record = records[i];
        std::int64_t next = 0;
        for (const auto& [first, row] : rows.of(i)) {
            if (first != next) {
                refuse(file_name, "design " + row.design + " has a block that starts with replication " +
                                      std::to_string(first) + " where " + std::to_string(next) + " is next");
            }
            next += row.replications;
            if (!row.error.empty()) {
                record.error = record.error.empty() ? row.error : record.error;
            } else if (record.error.empty()) {
                append(record, row);
            }
        }
        if (record.error.empty()) {
            record.error = sweep.designs[i].error;
        }
        if (record.error.empty() && rows.of(i).empty()) {
            record.error = "it was not run: go on with the sweep";
            record.incomplete = true;
        }
        if (record.error.empty()) {
            record.incomplete = record.replications < sweep.replications.least;
        }
    }
    return records;
}

bool append_objectives(const BlockRow& row, std::span<const SweepObjective> objectives, ObjectiveSamples& samples) {
    samples.values.resize(objectives.size());
    for (std::size_t j = 0; j < objectives.size(); ++j) {
        const auto column = row.metrics.find(objectives[j].metric);
        if (!row.error.empty() || column == row.metrics.end() ||
            std::find(column->second.begin(), column->second.end(), std::nullopt) != column->second.end()) {
            return false;
        }
        for (const std::optional<double>& value : column->second) {
            samples.values[j].push_back(toward_minimum(*value, objectives[j].minimize));
        }
    }
    return true;
}

std::string missing_objective(const DesignRecord& record, std::span<const SweepObjective> objectives) {
    for (const SweepObjective& objective : objectives) {
        const auto values = record.metrics.find(objective.metric);
        const auto missing = values == record.metrics.end()
                                 ? record.replications
                                 : std::count(values->second.begin(), values->second.end(), std::nullopt);
        if (missing > 0) {
            const auto why = record.undefined.find(objective.metric);
            return "the objective " + objective.metric + " has no value in " + std::to_string(missing) + " of " +
                   std::to_string(record.replications) + " replications" +
                   (why == record.undefined.end() ? "" : ": " + why->second);
        }
    }
    return "";
}

ObjectiveSamples objective_samples(const DesignRecord& record, std::span<const SweepObjective> objectives) {
    ObjectiveSamples samples;
    if (record.error.empty() && record.replications > 0 && missing_objective(record, objectives).empty()) {
        for (const SweepObjective& objective : objectives) {
            std::vector<double>& turned = samples.values.emplace_back();
            for (const std::optional<double>& value : record.metrics.at(objective.metric)) {
                turned.push_back(toward_minimum(*value, objective.minimize));
            }
        }
    }
    return samples;
}

}  // namespace millrace
