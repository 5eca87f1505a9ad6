// The step log: one JSON line per update, for plotting simulated and real curves on one chart.
#pragma once

#include <cstdint>
#include <ostream>

#include "sim/metrics/update_record.h"
#include "sim/scenario/scenario.h"

namespace millrace {

/// Writes the updates of one replication, warm-up included. Keys are flat `group/name`, units in the name.
void write_step_log(std::ostream& out, const Scenario& scenario, std::int64_t replication,
                    const ReplicationRecord& record);

}  // namespace millrace
