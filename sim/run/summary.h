// From what one replication counted to the metrics that people read (design section 4).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/metrics/update_record.h"
#include "sim/run/formulas.h"
#include "sim/scenario/scenario.h"

namespace millrace {

/// Metrics of one replication over its updates after the first `warmup`, by `group/name` key. A metric that has no
/// value there (steps since last use when nothing is used twice) is absent.
std::map<std::string, double> window_metrics(const Scenario& scenario, const FirstOrderCosts& costs,
                                             const ReplicationRecord& record, std::int64_t warmup);

/// The series that decide where warm-up ends, averaged over replications: mean staleness of each update's batch, and
/// the update period in seconds.
struct WarmupSeries {
    std::vector<double> staleness;
    std::vector<double> period_s;
};
WarmupSeries warmup_series(const std::vector<ReplicationRecord>& records);

}  // namespace millrace
