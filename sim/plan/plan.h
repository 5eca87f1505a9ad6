// The question that people who rent GPUs ask: how to split them, what to keep between the two roles, and how often to
// synchronise, so that a given quality costs the least.
//
// The search is staged. Formulas bound every design from below (plan_space.h). Designs are then simulated, shortly, in
// the order of their bounds, until what is left has bounds above the best design found, by more than the formulas have
// been seen to overshoot on the designs simulated so far, a probe of every store included. The rest is successive
// halving: ever fewer designs, ever longer and more often. All designs have the same seed, so replication r of each
// has the same random streams, and they are compared by their differences, replication by replication. Nothing
// depends on the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/metrics/estimate.h"
#include "sim/plan/plan_space.h"
#include "sim/scenario/calibration.h"

namespace millrace {

enum class PlanObjective {
    usd_to_target,    ///< price x gpu_s_to_target
    gpu_s_to_target,  ///< reserved GPU-s per update x on_policy_updates x noise/relative_variance
    usd_per_update,
    update_period_s
};

struct PlanQuestion {
    std::int64_t gpus = 2;  ///< at least 2
    bool at_most = false;   ///< fewer GPUs will do, too
    PlanObjective objective = PlanObjective::usd_to_target;
    std::optional<double> max_staleness;      ///< of staleness/mean
    std::optional<double> max_staleness_p99;  ///< of staleness/p99
    PlanGrid grid;
    std::uint64_t seed = 1;
};

/// How thoroughly to simulate. Updates are those that are measured, without warm-up.
struct PlanEffort {
    std::int64_t first_updates = 32;
    std::int64_t first_replications = 2;
    std::int64_t final_updates = 256;
    std::int64_t final_replications = 8;
    std::int64_t most_replications = 32;  ///< where the finalists are hard to tell apart
    std::int64_t finalists = 12;
};

/// Effort for a batch of that many rollouts: what matters is how many are seen, and a large batch shows many.
PlanEffort default_plan_effort(std::int64_t batch);

/// Metrics of one replication by `group/name` key.
using PlanMetrics = std::map<std::string, double>;

/// Simulates one replication. Called from several threads. What it throws as std::runtime_error rules the design out.
using PlanEvaluator = std::function<PlanMetrics(const Scenario& scenario, std::int64_t replication)>;

struct PlanControl {
    std::int64_t jobs = 1;
    const std::atomic<bool>* interrupt = nullptr;
    std::function<void(const std::string&)> progress = nullptr;  ///< a line after each stage, from the caller's thread
};

/// The interrupt came.
struct PlanInterrupted : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A design and what simulating it gave.
struct PlanEvaluation {
    PlanDesign design;
    PlanHorizon horizon;
    std::vector<PlanMetrics> runs;  ///< by replication
    std::string error;              ///< why it cannot run; then there are no runs

    /// Mean of a metric over the replications; 0 where none has it.
    double mean(const std::string& metric) const;
    Estimate estimate_of(const std::string& metric) const;
};

/// Value of the objective in one replication; `gpus` is W + T of the design.
double plan_objective(PlanObjective objective, const Calibration& calibration, std::int64_t gpus,
                      const PlanMetrics& metrics);

/// A design beside the recommended one.
struct PlanAlternative {
    std::string what;  ///< "runner-up", or the step away from the recommended design
    PlanEvaluation evaluation;
    Estimate objective;
    Estimate excess;       ///< objective over the recommended design's, less 1; from paired replications
    bool feasible = true;  ///< meets the question's limits
    bool tied = false;     ///< not distinguished from the best found
};

struct PlanStage {
    std::string name;
    std::int64_t designs = 0;
    std::int64_t updates = 0;       ///< measured, of each replication
    std::int64_t replications = 0;  ///< of each design
};

/// Simulated value over its lower bound, among the designs that were simulated.
struct PlanFormulaError {
    double least = 1.0;  ///< below 1: the formula overshot
    double median = 1.0;
    double most = 1.0;
};

/// Designs that cannot run, for the same reason.
struct PlanRefusal {
    std::int64_t designs = 0;
    PlanDesign example;
    std::string reason;  ///< of the example; numbers in it may differ for the others
};

struct Plan {
    std::int64_t designs = 0;             ///< in the space
    std::int64_t ruled_out = 0;           ///< by their bounds
    std::vector<PlanRefusal> impossible;  ///< of those tried; the most frequent reason first
    std::vector<PlanStage> stages;
    PlanFormulaError formula_error;

    /// Empty when no design meets the limits; then `nearest` says how near one comes.
    std::optional<PlanEvaluation> recommended;
    std::optional<PlanEvaluation> nearest;
    Estimate objective;       ///< of the recommended design
    std::int64_t equals = 0;  ///< designs within plan_indifference of the best, the recommended included
    std::vector<PlanAlternative> runner_ups;  ///< by objective; ties first
    std::vector<PlanAlternative> references;  ///< the best on-policy design, the best of the other kind of store
    std::vector<PlanAlternative> deviations;  ///< one step of one decision, the rest kept
};

/// Designs whose objectives differ by less than this share are as good as each other: the simpler one is recommended
/// (plan_space.h), and of equally simple ones the one with the lesser objective. What a few replications cannot tell
/// apart is simulated more often, so a wider interval than this is no reason to recommend a design that may cost more.
inline constexpr double plan_indifference = 0.005;
/// The same for how far designs exceed the limits where none meets them, in versions.
inline constexpr double plan_staleness_indifference = 0.02;

/// Throws std::invalid_argument for a question that makes no sense (fewer than 2 GPUs, an empty grid, an objective in
/// USD without a price).
Plan make_plan(const Calibration& calibration, const PlanQuestion& question, const PlanEffort& effort,
               const PlanEvaluator& evaluate, const PlanControl& control);

}  // namespace millrace
