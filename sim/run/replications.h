// Runs one scenario: independent replications over threads, warm-up removal, estimates.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "sim/metrics/estimate.h"
#include "sim/metrics/histogram.h"
#include "sim/pipeline/learner.h"
#include "sim/run/formulas.h"
#include "sim/scenario/scenario.h"

namespace millrace {

struct RunOptions {
    std::int64_t jobs = 1;                         ///< threads; the result does not depend on it
    std::int64_t first_replication = 0;            ///< scenario.replications of them, numbered from here
    const std::atomic<bool>* interrupt = nullptr;  ///< when it turns true, replications in progress are given up
    /// Called from the caller's thread about ten times a second with the share of the work that is done, in [0, 1].
    std::function<void(double)> progress = nullptr;
    /// The learner of a replication, for scenarios that have one; called from the threads that simulate. Without it the
    /// run is one of timing only. Whoever makes learners keeps what they have learnt.
    std::function<std::shared_ptr<Learner>(std::int64_t replication)> make_learner = nullptr;
    /// Whether an interrupt is left to the learners, which stop their replications when it suits them; then it only
    /// keeps further replications from beginning.
    bool learners_stop = false;
    std::ostream* steps = nullptr;  ///< one JSON line per update and replication, in that order, warm-up included
};

struct RunResult {
    FirstOrderCosts costs;                    ///< what the service laws alone determine
    std::map<std::string, double> formulas;   ///< the closed forms, for those metrics that have one
    std::map<std::string, Estimate> metrics;  ///< by `group/name` key; ordered, so documents are reproducible
    /// By metric key, one value per replication that was complete, in their order; NaN where a replication has none.
    std::map<std::string, std::vector<double>> samples;
    std::map<std::string, std::string> undefined;  ///< metrics that have no value in this run, and why
    std::map<std::string, Histogram> histograms;   ///< "staleness", "replay_count", "steps_since_last_use"
    std::vector<std::string> warnings;             ///< full sentences
    std::int64_t replications_done = 0;            ///< fewer than asked for only after an interrupt
    std::int64_t warmup_updates = 0;               ///< updates discarded at the start of each replication
    std::uint64_t events = 0;                      ///< engine events over all replications
    std::uint64_t order_digest = 0;                ///< of every event of every replication, in order
    bool interrupted = false;
};

/// Throws PipelineStuck (sim/pipeline/pipeline.h), a std::runtime_error with an explanation, when the pipeline
/// deadlocks, std::range_error when a number comes out that is not finite. After an interrupt the result holds the
/// replications that were complete.
///
/// What a replication does depends on its number only. The warm-up that "auto" cuts off depends on all replications of
/// the run: who adds replications to a design gives the scenario the cut that the first ones found.
RunResult run_replications(const Scenario& scenario, const RunOptions& options);

/// The updates that "auto" cuts off, by the timeline alone: of a scenario with a learner, without learning. Throws as
/// run_replications does; after an interrupt it may be too few. Warnings, full sentences, are added to `warnings`.
std::int64_t automatic_warmup(const Scenario& scenario, const RunOptions& options, std::vector<std::string>& warnings);

}  // namespace millrace
