#include "sim/run/step_log.h"

#include <nlohmann/json.hpp>

namespace millrace {

void write_step_log(std::ostream& out, const Scenario& scenario, std::int64_t replication,
                    const ReplicationRecord& record) {
    UpdateRecord before;
    std::int64_t step = 0;
    for (const UpdateRecord& after : record.updates) {
        const auto samples = static_cast<double>(after.samples - before.samples);
        nlohmann::ordered_json row;
        row["step"] = ++step;
        row["replication"] = replication;
        row["time/wall_s"] = seconds(after.at);
        row["time/update_period_s"] = seconds(after.at - before.at);
        row["staleness/mean"] = static_cast<double>(after.staleness - before.staleness) / samples;
        row["staleness/pre_store"] = static_cast<double>(after.pre_store - before.pre_store) / samples;
        row["replay/unique_fraction"] = static_cast<double>(after.unique_samples - before.unique_samples) / samples;
        row["last_use/new_fraction"] = static_cast<double>(after.new_samples - before.new_samples) / samples;
        row["rollouts/generated"] = after.generated - before.generated;
        row["rollouts/trained"] = after.samples - before.samples;
        row["rollouts/dropped"] = after.dropped - before.dropped;
        row["rollouts/trained_tokens"] = after.tokens - before.tokens;
        if (scenario.pipeline.noise) {
            row["noise/relative_variance"] = after.relative_variance - before.relative_variance;
        }
        out << row.dump() << '\n';
        before = after;
    }
}

}  // namespace millrace
