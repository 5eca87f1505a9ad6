#include "sim/plan/plan_simulation.h"

#include <cmath>

#include "sim/explain/explain.h"
#include "sim/pipeline/pipeline.h"
#include "sim/run/formulas.h"
#include "sim/run/parallel.h"
#include "sim/run/summary.h"

namespace millrace {
namespace {

/// No samples when the interrupt came.
ReplicationRecord simulate(const Scenario& scenario, std::int64_t replication, const std::atomic<bool>* interrupt) {
    Pipeline pipeline(scenario.pipeline, scenario.seed, static_cast<std::uint64_t>(replication));
    if (!pipeline.run(scenario.horizon.updates, scenario.horizon.warmup_updates.value(), interrupt)) {
        throw PlanInterrupted("interrupted");
    }
    return pipeline.take_record();
}

PlanMetrics metrics_of(const Scenario& scenario, const ReplicationRecord& record) {
    PlanMetrics metrics =
        window_metrics(scenario, first_order_costs(scenario.pipeline), record, scenario.horizon.warmup_updates.value());
    for (const auto& [key, value] : metrics) {
        if (!std::isfinite(value)) {
            throw std::runtime_error("the metric " + key + " is not a finite number");
        }
    }
    return metrics;
}

}  // namespace

PlanEvaluator plan_simulation(const std::atomic<bool>* interrupt) {
    return [interrupt](const Scenario& scenario, std::int64_t replication) {
        return metrics_of(scenario, simulate(scenario, replication, interrupt));
    };
}

VarianceParts variance_parts(const Scenario& scenario, const PlanControl& control) {
    if (!scenario.pipeline.noise) {
        return {};
    }
    // The same streams draw the same batches, whatever the noise model says of them.
    Scenario reuse = scenario;
    reuse.pipeline.noise->sigma2 = FloorGrowthNoise{};
    Scenario repeats = reuse;
    repeats.pipeline.noise->rho = 0.0;
    const auto count = static_cast<std::size_t>(scenario.replications);
    std::vector<VarianceParts> parts(count);
    parallel_for(count, control.jobs, [&](std::size_t r) {
        const auto variance_of = [&](const Scenario& variant) {
            const ReplicationRecord record = simulate(variant, static_cast<std::int64_t>(r), control.interrupt);
            return metrics_of(variant, record).at("noise/relative_variance");
        };
        const ReplicationRecord record = simulate(scenario, static_cast<std::int64_t>(r), control.interrupt);
        parts[r].all = metrics_of(scenario, record).at("noise/relative_variance");
        parts[r].reuse = variance_of(reuse);
        parts[r].repeats = variance_of(repeats);
        const NoiseLaw& law = scenario.pipeline.noise->sigma2;
        double sum = 0.0;
        const std::vector<std::uint64_t>& counts = record.staleness.counts();
        for (std::size_t age = 0; age < counts.size(); ++age) {
            sum += static_cast<double>(counts[age]) * sigma2_of_sample(law, static_cast<double>(age));
        }
        parts[r].staleness = sum / static_cast<double>(record.staleness.total()) / sigma2_of_sample(law, 0.0);
    });
    VarianceParts mean{0.0, 0.0, 0.0, 0.0};
    for (const VarianceParts& one : parts) {
        mean.all += one.all / static_cast<double>(count);
        mean.staleness += one.staleness / static_cast<double>(count);
        mean.reuse += one.reuse / static_cast<double>(count);
        mean.repeats += one.repeats / static_cast<double>(count);
    }
    return mean;
}

std::string what_binds(const Scenario& scenario) {
    return explain_period(scenario.pipeline).binds;
}

}  // namespace millrace
