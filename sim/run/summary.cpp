#include "sim/run/summary.h"

#include <stdexcept>

namespace millrace {
namespace {

/// Difference of two records: what happened in a window of updates.
struct Window {
    const UpdateRecord& from;
    const UpdateRecord& to;
    double updates;

    template <typename Number>
    double count(Number UpdateRecord::*field) const {
        return static_cast<double>(to.*field - from.*field);
    }
    double elapsed_s() const { return seconds(to.at - from.at); }
};

}  // namespace

std::map<std::string, double> window_metrics(const Scenario& scenario, const FirstOrderCosts& costs,
                                             const ReplicationRecord& record, std::int64_t warmup) {
    const PipelineConfig& config = scenario.pipeline;
    const UpdateRecord zero;
    const Window window{warmup == 0 ? zero : record.updates[static_cast<std::size_t>(warmup - 1)],
                        record.updates.back(),
                        static_cast<double>(static_cast<std::int64_t>(record.updates.size()) - warmup)};
    const auto W = static_cast<double>(config.workers.count);
    const auto T = static_cast<double>(config.trainers.count);
    const double period_s = window.elapsed_s() / window.updates;
    if (!(period_s > 0.0)) {
        throw std::range_error(
            "no simulated time passes in the updates that are measured: an update takes less than a nanosecond");
    }
    std::map<std::string, double> metrics;

    // Time and what it costs.
    metrics["time/update_period_s"] = period_s;
    metrics["time/wall_s"] = seconds(record.updates.back().at);

    constexpr const char* worker_states[] = {"workers/busy", "workers/paused", "workers/blocked", "workers/starved"};
    constexpr const char* trainer_states[] = {"trainers/busy", "trainers/waiting", "trainers/stalled"};
    const double elapsed_ns = window.elapsed_s() * 1e9;
    for (std::size_t state = 0; state < std::size(worker_states); ++state) {
        metrics[worker_states[state]] =
            static_cast<double>(window.to.worker_ns[state] - window.from.worker_ns[state]) / (W * elapsed_ns);
    }
    for (std::size_t state = 0; state < std::size(trainer_states); ++state) {
        metrics[trainer_states[state]] =
            static_cast<double>(window.to.trainer_ns[state] - window.from.trainer_ns[state]) / (T * elapsed_ns);
    }
    metrics["workers/running_mean"] = window.count(&UpdateRecord::running_presence_s) / window.elapsed_s() / W;

    const double reserved_gpu_s = (W + T) * period_s;
    metrics["compute/reserved_gpu_s_per_update"] = reserved_gpu_s;
    metrics["compute/active_gpu_s_per_update"] =
        (metrics["workers/busy"] * W + metrics["trainers/busy"] * T) * period_s;
    metrics["compute/gamma_simulated"] = reserved_gpu_s / (costs.gpu_s_per_update * (1.0 + costs.mu));
    if (scenario.price) {
        metrics["compute/usd_per_update"] = reserved_gpu_s / 3600.0 * scenario.price->usd_per_gpu_hour;
    }

    // Rollouts and their use.
    const double samples = window.count(&UpdateRecord::samples);
    const double generated = window.count(&UpdateRecord::generated);
    const double dropped = window.count(&UpdateRecord::dropped);
    const double staleness = window.count(&UpdateRecord::staleness);
    metrics["rollouts/generated_per_update"] = generated / window.updates;
    metrics["rollouts/trained_per_update"] = samples / window.updates;
    metrics["rollouts/dropped_per_update"] = dropped / window.updates;
    metrics["store/size_mean"] = window.count(&UpdateRecord::store_presence_s) / window.elapsed_s();
    if (generated > 0.0) {
        metrics["replay/mean"] = samples / generated;
        metrics["compute/effective_mu"] = (samples / T) / (generated / W);
    }
    metrics["replay/unique_fraction"] = window.count(&UpdateRecord::unique_samples) / samples;
    const double repeats = samples - window.count(&UpdateRecord::new_samples);
    metrics["last_use/new_fraction"] = 1.0 - repeats / samples;
    if (repeats > 0.0) {
        metrics["last_use/mean"] = window.count(&UpdateRecord::last_use_steps) / repeats;
    }

    // Staleness of what was trained on; what was offered also counts the rollouts that were dropped unused.
    const double mean_staleness = staleness / samples;
    metrics["staleness/mean"] = mean_staleness;
    metrics["staleness/variance"] =
        window.count(&UpdateRecord::staleness_squared) / samples - mean_staleness * mean_staleness;
    metrics["staleness/pre_store"] = window.count(&UpdateRecord::pre_store) / samples;
    metrics["staleness/in_store"] = mean_staleness - metrics["staleness/pre_store"];
    metrics["staleness/group_mean"] = window.count(&UpdateRecord::group_staleness) / samples;
    metrics["staleness/offered_mean"] =
        (staleness + window.count(&UpdateRecord::dropped_staleness)) / (samples + dropped);
    if (record.staleness.total() > 0) {
        metrics["staleness/p50"] = static_cast<double>(record.staleness.quantile(0.50));
        metrics["staleness/p99"] = static_cast<double>(record.staleness.quantile(0.99));
        metrics["staleness/max"] = static_cast<double>(record.staleness.quantile(1.0));
    }

    if (config.noise) {
        const double relative_variance = window.count(&UpdateRecord::relative_variance) / window.updates;
        metrics["noise/relative_variance"] = relative_variance;
        metrics["noise/relative_compute_to_target"] = metrics["compute/gamma_simulated"] * relative_variance;
    }
    return metrics;
}

WarmupSeries warmup_series(const std::vector<ReplicationRecord>& records) {
    const std::size_t updates = records.front().updates.size();
    const auto replications = static_cast<double>(records.size());
    WarmupSeries series{std::vector<double>(updates, 0.0), std::vector<double>(updates, 0.0)};
    for (const ReplicationRecord& record : records) {
        UpdateRecord before;
        for (std::size_t update = 0; update < updates; ++update) {
            const UpdateRecord& after = record.updates[update];
            series.staleness[update] += static_cast<double>(after.staleness - before.staleness) /
                                        static_cast<double>(after.samples - before.samples) / replications;
            series.period_s[update] += seconds(after.at - before.at) / replications;
            before = after;
        }
    }
    return series;
}

}  // namespace millrace
