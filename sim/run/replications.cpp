#include "sim/run/replications.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "sim/metrics/mser5.h"
#include "sim/pipeline/pipeline.h"
#include "sim/run/compute_budget.h"
#include "sim/run/step_log.h"
#include "sim/run/summary.h"

namespace millrace {
namespace {

/// Share of a run that "auto" always discards: MSER-5 alone sometimes keeps an initial transient that is as smooth as
/// the rest.
constexpr std::int64_t warmup_floor_divisor = 10;

struct Pass {
    std::vector<ReplicationRecord> records;  ///< complete ones, in order of replication
    std::vector<std::int64_t> replications;  ///< their numbers
    bool interrupted = false;
};

/// Simulates replications first .. first + count - 1, each on whichever thread is free. What a replication leaves
/// behind depends on its number only.
class Runner {
   public:
    Runner(const Scenario& scenario, const RunOptions& options) : scenario_(scenario), options_(options) {}

    Pass run(std::int64_t histogram_start, double progress_from, double progress_to, bool with_learner) {
        const auto count = static_cast<std::size_t>(scenario_.replications);
        const std::size_t jobs = std::clamp<std::size_t>(static_cast<std::size_t>(options_.jobs), 1, count);
        std::vector<std::optional<ReplicationRecord>> records(count);
        std::vector<std::exception_ptr> failures(count);
        std::atomic<std::size_t> next{0};
        std::atomic<std::int64_t> updates_done{0};
        std::size_t running = jobs;
        std::mutex mutex;
        std::condition_variable finished;

        const auto work = [&] {
            for (std::size_t r = next++; r < count && !stopped(); r = next++) {
                try {
                    const std::int64_t number = options_.first_replication + static_cast<std::int64_t>(r);
                    const auto learner = with_learner ? options_.make_learner(number) : nullptr;
                    Pipeline pipeline(scenario_.pipeline, scenario_.seed, static_cast<std::uint64_t>(number),
                                      learner.get());
                    const auto* interrupt = learner && options_.learners_stop ? nullptr : options_.interrupt;
                    if (pipeline.run(scenario_.horizon.updates, histogram_start, interrupt, &updates_done) &&
                        !(learner && learner->stopped())) {
                        records[r] = pipeline.take_record();
                    }
                } catch (...) {
                    failures[r] = std::current_exception();
                }
            }
            const std::lock_guard lock(mutex);
            --running;
            finished.notify_one();
        };

        std::vector<std::jthread> threads;
        for (std::size_t job = 0; job < jobs; ++job) {
            threads.emplace_back(work);
        }
        const double all = static_cast<double>(scenario_.replications) * static_cast<double>(scenario_.horizon.updates);
        std::unique_lock lock(mutex);
        while (!finished.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
            if (options_.progress) {
                const double share = static_cast<double>(updates_done.load()) / all;
                options_.progress(progress_from + share * (progress_to - progress_from));
            }
        }
        lock.unlock();
        threads.clear();

        // All replications have run, so that the first failure is the same one whatever the number of threads.
        for (const std::exception_ptr& failure : failures) {
            if (failure) {
                std::rethrow_exception(failure);
            }
        }
        Pass pass;
        for (std::size_t r = 0; r < count; ++r) {
            if (records[r]) {
                pass.records.push_back(std::move(*records[r]));
                pass.replications.push_back(options_.first_replication + static_cast<std::int64_t>(r));
            }
        }
        pass.interrupted = pass.records.size() < count;
        return pass;
    }

   private:
    bool stopped() const { return options_.interrupt != nullptr && options_.interrupt->load(); }

    const Scenario& scenario_;
    const RunOptions& options_;
};

/// The fewest updates that "auto" cuts off: some are left to measure even of a run of few.
std::int64_t least_warmup(std::int64_t updates) {
    return std::min((updates + warmup_floor_divisor - 1) / warmup_floor_divisor, updates - 1);
}

std::int64_t settled_after(const std::vector<ReplicationRecord>& records, std::int64_t updates,
                           std::vector<std::string>& warnings) {
    const WarmupSeries series = warmup_series(records);
    const std::int64_t cut = std::max({least_warmup(updates), mser5(series.staleness), mser5(series.period_s)});
    const std::int64_t latest_cut = updates / 5 / 2 * 5;  // MSER-5 looks no further
    if (cut > 0 && cut >= latest_cut) {
        warnings.push_back("Warm-up takes about half of the run (" + std::to_string(cut) + " of " +
                           std::to_string(updates) +
                           " updates): the pipeline may not have settled. Raise horizon.updates.");
    }
    return cut;
}

/// Updates that all replications have made.
std::int64_t shortest(const std::vector<ReplicationRecord>& records) {
    std::size_t updates = records.front().updates.size();
    for (const ReplicationRecord& record : records) {
        updates = std::min(updates, record.updates.size());
    }
    return static_cast<std::int64_t>(updates);
}

/// Replications that end by their compute make different numbers of updates; metrics are of those that all have made.
void cut_to_shortest(std::vector<ReplicationRecord>& records, RunResult& result) {
    const std::int64_t updates = shortest(records);
    for (ReplicationRecord& record : records) {
        record.updates.resize(static_cast<std::size_t>(updates));
    }
    if (result.warmup_updates >= updates) {
        result.warmup_updates = updates - 1;
        result.warnings.push_back(
            "The compute of horizon.units is spent within the warm-up: timing metrics are those of the "
            "last update alone. Raise horizon.units.");
    }
}

void estimate_metrics(const Scenario& scenario, const std::vector<ReplicationRecord>& records, RunResult& result) {
    for (std::size_t i = 0; i < records.size(); ++i) {
        for (const auto& [key, value] : window_metrics(scenario, result.costs, records[i], result.warmup_updates)) {
            if (!std::isfinite(value)) {
                throw std::range_error("the metric " + key +
                                       " is not a finite number: the scenario's numbers are out of any sensible range");
            }
            const auto column = result.samples.try_emplace(key, records.size(), std::nan("")).first;
            column->second[i] = value;
        }
    }
    for (const auto& [key, column] : result.samples) {
        std::vector<double> values = column;
        std::erase_if(values, [](double value) { return std::isnan(value); });
        Estimate& metric = result.metrics[key] = estimate(values);
        if (values.size() < records.size()) {
            metric.note += (metric.note.empty() ? "" : "; ") + std::string("defined in ") +
                           std::to_string(values.size()) + " of " + std::to_string(records.size()) + " replications";
        }
    }
    const double gamma = result.formulas.at("compute/gamma");
    result.metrics["compute/gamma"] = closed_form(gamma);
    result.samples["compute/gamma"].assign(records.size(), gamma);
    const std::pair<const char*, const char*> may_be_undefined[] = {
        {"replay/mean", "no rollout was generated after the warm-up"},
        {"compute/effective_mu", "no rollout was generated after the warm-up"},
        {"last_use/mean", "no rollout was used twice"},
        {"staleness/p50", "no update was made after the warm-up"},
        {"staleness/p99", "no update was made after the warm-up"},
        {"staleness/max", "no update was made after the warm-up"}};
    for (const auto& [key, reason] : may_be_undefined) {
        if (!result.metrics.contains(key)) {
            result.undefined[key] = reason;
        }
    }
}

/// Pipelines that run, but not as anybody wants.
void warn_of_bottlenecks(const Scenario& scenario, RunResult& result) {
    const double generated = result.metrics.at("rollouts/generated_per_update").mean;
    const double period_s = result.metrics.at("time/update_period_s").mean;
    if (generated == 0.0) {
        result.warnings.push_back(
            scenario.pipeline.weight_sync.in_flight == InFlight::in_place
                ? "No rollout is generated after the warm-up: the workers are paused for one weight transfer after "
                  "another, which take longer than an update. Raise weight_sync.every or let trainers_wait."
                : "No rollout is generated after the warm-up.");
    }
    const auto* step = std::get_if<StepService>(&scenario.pipeline.workers.service);
    const auto slots = static_cast<double>(scenario.pipeline.workers.slots);
    const double running = result.metrics.at("workers/running_mean").mean;
    if (step != nullptr && step->kv_cap_tokens && result.metrics.at("workers/busy").mean > 0.95 &&
        running < 0.95 * slots) {
        result.warnings.push_back(
            "Memory limits the workers: of " + std::to_string(scenario.pipeline.workers.slots) + " slots " +
            std::to_string(static_cast<std::int64_t>(running + 0.5)) +
            " run on average. A rollout reserves its prompt and its whole response in "
            "kv_cap_tokens when it joins; an engine that pages memory in as a response grows runs "
            "up to twice as many.");
    }
    const std::int64_t batch = scenario.pipeline.trainers.batch;
    if (const auto* buffer = std::get_if<ReplayBufferConfig>(&scenario.pipeline.store);
        buffer && buffer->capacity < batch) {
        result.warnings.push_back("The buffer holds " + std::to_string(buffer->capacity) +
                                  " rollouts, fewer than a batch of " + std::to_string(batch) +
                                  ": every batch uses some of them several times.");
    }
    const auto& reward = scenario.pipeline.reward;
    if (reward && reward->servers) {
        const double load = generated / period_s * reward->latency_s.mean() / static_cast<double>(*reward->servers);
        if (load > 1.0) {
            result.warnings.push_back(
                "The reward stage cannot keep up: it has " + std::to_string(*reward->servers) +
                " servers and work for " +
                std::to_string(static_cast<std::int64_t>(std::ceil(load * static_cast<double>(*reward->servers)))) +
                ", so rollouts pile up before it and staleness grows for as long as the run lasts. "
                "Raise reward.servers or limit what may start with admission.");
        }
    }
}

}  // namespace

std::int64_t automatic_warmup(const Scenario& scenario, const RunOptions& options, std::vector<std::string>& warnings) {
    RunOptions timing = options;
    timing.make_learner = nullptr;
    if (scenario.horizon.units) {
        const double gpu_s = first_order_costs(scenario.pipeline).gpu_s_per_update;
        timing.make_learner = [&scenario, gpu_s](std::int64_t) {
            return std::make_shared<ComputeBudget>(*scenario.horizon.units, gpu_s);
        };
    }
    std::int64_t updates = scenario.horizon.updates;
    Pass pass = Runner(scenario, timing).run(least_warmup(updates), 0.0, 0.0, timing.make_learner != nullptr);
    if (pass.records.empty()) {
        return least_warmup(updates);
    }
    updates = shortest(pass.records);
    for (ReplicationRecord& record : pass.records) {
        record.updates.resize(static_cast<std::size_t>(updates));
    }
    return settled_after(pass.records, updates, warnings);
}

RunResult run_replications(const Scenario& scenario, const RunOptions& options) {
    const std::int64_t updates = scenario.horizon.updates;
    const std::int64_t histogram_start = scenario.horizon.warmup_updates.value_or(least_warmup(updates));

    RunResult result;
    result.costs = first_order_costs(scenario.pipeline);
    result.formulas = formulas(scenario, result.costs);
    Runner runner(scenario, options);
    const bool learns = options.make_learner != nullptr;
    std::int64_t known_warmup = histogram_start;
    if (learns && !scenario.horizon.warmup_updates) {
        // Learning twice would be a waste: the timeline alone tells how long it takes to settle.
        known_warmup = automatic_warmup(scenario, options, result.warnings);
    }
    Pass pass = runner.run(known_warmup, 0.0, 1.0, learns);
    result.interrupted = pass.interrupted;
    result.replications_done = static_cast<std::int64_t>(pass.records.size());
    if (pass.records.empty()) {
        result.warnings.push_back("No replication was complete when the run was stopped: there is nothing to report.");
        return result;
    }

    result.warmup_updates = known_warmup;
    if (learns) {
        cut_to_shortest(pass.records, result);
    } else if (!scenario.horizon.warmup_updates) {
        result.warmup_updates = settled_after(pass.records, updates, result.warnings);
    }
    if (result.warmup_updates > known_warmup && !pass.interrupted) {
        // The histograms began too early; the same replications again, now that the cut is known.
        Pass again = runner.run(result.warmup_updates, 0.0, 1.0, false);
        if (again.interrupted) {
            result.interrupted = true;
            result.warnings.push_back(
                "The run was stopped while histograms were being refined: they, and the quantiles "
                "of staleness, start at update " +
                std::to_string(histogram_start) + " instead of after the warm-up.");
        } else {
            pass = std::move(again);
        }
    }

    if (result.warmup_updates > known_warmup && pass.interrupted) {
        result.warnings.push_back(
            "The run was stopped before histograms could be refined: they, and the quantiles of "
            "staleness, start at update " +
            std::to_string(histogram_start) + " instead of after the warm-up.");
    }

    estimate_metrics(scenario, pass.records, result);
    warn_of_bottlenecks(scenario, result);
    for (std::size_t i = 0; i < pass.records.size(); ++i) {
        const ReplicationRecord& record = pass.records[i];
        result.histograms["staleness"].merge(record.staleness);
        result.histograms["replay_count"].merge(record.replay_count);
        result.histograms["steps_since_last_use"].merge(record.steps_since_last_use);
        result.events += record.events;
        result.order_digest = result.order_digest * 0x9E3779B97F4A7C15u + record.order_digest;
        if (options.steps != nullptr) {
            write_step_log(*options.steps, scenario, pass.replications[i], record);
        }
    }
    return result;
}

}  // namespace millrace
