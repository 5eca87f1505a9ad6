// What the rows of a sweep's folder say of one design.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/pareto/pareto_decision.h"
#include "sim/sweep/design.h"
#include "sim/sweep/row_collection.h"

namespace millrace {

struct DesignRecord {
    std::int64_t replications = 0;
    std::int64_t warmup_updates = 0;  ///< discarded at the start of each
    /// By metric, one value per replication from 0 on; none where it has no value.
    std::map<std::string, std::vector<std::optional<double>>> metrics;
    std::map<std::string, std::string> undefined;  ///< of the first block that says so
    bool incomplete = false;                       ///< the sweep has not run its first replications yet
    std::string error;  ///< why there is nothing to compare: it is impossible, a block failed, it was not run; or empty
};

/// One record per design of the sweep. `file_name` is for messages. Throws ScenarioError for rows that overlap or leave
/// replications out.
std::vector<DesignRecord> collect_records(const Sweep& sweep, const RowCollection& rows, const std::string& file_name);

/// The objectives of a record, turned so that less is better. Without values when it has an error or lacks one in some
/// replication: what has no value is neither good nor bad.
ObjectiveSamples objective_samples(const DesignRecord& record, std::span<const SweepObjective> objectives);

/// Adds the objectives of a row's replications to those before, turned likewise. False when the block has failed or
/// lacks one; then the samples are of no use any more.
bool append_objectives(const BlockRow& row, std::span<const SweepObjective> objectives, ObjectiveSamples& samples);

/// Why a record without an error has no objective samples; empty when it has.
std::string missing_objective(const DesignRecord& record, std::span<const SweepObjective> objectives);

}  // namespace millrace
