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
#include "sim/scenario/scenario.h"
#include "sim/sweep/formulas.h"

namespace millrace {

struct RunOptions {
    std::int64_t jobs = 1;                         ///< threads; the result does not depend on it
    const std::atomic<bool>* interrupt = nullptr;  ///< when it turns true, replications in progress are given up
    /// Called from the caller's thread about ten times a second with the share of the work that is done, in [0, 1].
    std::function<void(double)> progress = nullptr;
    /// The learner of a replication, for scenarios that have one; called from the threads that simulate. Without it the
    /// run is one of timing only. Whoever makes learners keeps what they have learnt.
    std::function<std::shared_ptr<Learner>(std::int64_t replication)> make_learner = nullptr;
    std::ostream* steps = nullptr;  ///< one JSON line per update and replication, in that order, warm-up included
};

struct RunResult {
    FirstOrderCosts costs;                    ///< what the service laws alone determine
    std::map<std::string, double> formulas;   ///< the closed forms, for those metrics that have one
    std::map<std::string, Estimate> metrics;  ///< by `group/name` key; ordered, so documents are reproducible
    /// Behind each simulated metric its value in each replication that defines it, in order of replication.
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
/// deadlocks, std::runtime_error when a number comes out that is not finite. After an interrupt the result holds the
/// replications that were complete.
RunResult run_replications(const Scenario& scenario, const RunOptions& options);

}  // namespace millrace
