// The designs that a plan chooses from: what is decided about a pipeline whose service times are measured.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/calibration.h"
#include "sim/scenario/scenario.h"

namespace millrace {

/// How to split the GPUs and what stands between the two roles.
struct PlanDesign {
    enum class Store { transfer_queue, replay_buffer };

    std::int64_t workers = 1;   ///< W
    std::int64_t trainers = 1;  ///< T
    /// transfer_queue: fifo under admission control, with room for all that is admitted.
    /// replay_buffer: the `size` freshest rollouts, sampled uniformly with replacement; no admission control.
    Store store = Store::transfer_queue;
    std::int64_t size = 0;        ///< of a queue: steps ahead, K; of a buffer: N, rollouts
    std::int64_t sync_every = 1;  ///< k: updates between two weight transfers

    auto operator<=>(const PlanDesign&) const = default;
};

/// "W = 12, T = 4, replay buffer of N = 1024, weights every 2 updates".
std::string describe(const PlanDesign& design);

/// Whether there is less to build and to tune in `a`: a queue rather than a buffer, then fewer steps ahead or a smaller
/// buffer, then weights more often. The split makes neither simpler.
bool simpler(const PlanDesign& a, const PlanDesign& b);

/// What may be chosen beside the split, each list in ascending order.
struct PlanGrid {
    std::vector<std::int64_t> steps_ahead;  ///< of a transfer queue
    std::vector<std::int64_t> capacities;   ///< of a replay buffer, in rollouts
    std::vector<std::int64_t> sync_every;
};

/// 0, 1, 2, 4 and 8 steps ahead; buffers of 1, 2, 4, ... 64 batches; weights every 1, 2, 4 and 8 updates.
PlanGrid default_plan_grid(std::int64_t batch);

/// All designs on `gpus` GPUs (or on `gpus` or fewer), by GPUs, T, store, size, k. Whether a design can run at all is
/// the scenario decoder's to say.
std::vector<PlanDesign> plan_space(const PlanGrid& grid, std::int64_t gpus, bool at_most);

/// The designs that differ from `design` in one step of one decision: one GPU more or less to generate (as many
/// in all), the next larger and smaller store of its kind, the next k.
struct PlanStep {
    std::string what;  ///< "one GPU more generates, one fewer trains"
    PlanDesign design;
};
std::vector<PlanStep> plan_neighbours(const PlanGrid& grid, const PlanDesign& design);

/// How long to simulate a design.
struct PlanHorizon {
    std::int64_t warmup_updates = 0;
    std::int64_t measured_updates = 0;  ///< after the warm-up

    bool operator==(const PlanHorizon&) const = default;
};

/// The scenario of a design, complete and checked. Throws ScenarioError when the design cannot run.
Scenario plan_scenario(const Calibration& calibration, const PlanDesign& design, const PlanHorizon& horizon,
                       std::uint64_t seed, std::int64_t replications);

/// The same as an indented scenario file.
std::string plan_scenario_file(const Calibration& calibration, const PlanDesign& design, const PlanHorizon& horizon,
                               std::uint64_t seed, std::int64_t replications);

/// What formulas say a design can come to at best.
struct PlanBound {
    double update_period_s = 0.0;    ///< least
    double relative_variance = 1.0;  ///< least
    double staleness = 0.0;          ///< least mean
    double horizon_updates = 0.0;    ///< that a rollout stays in a buffer; 0 for a queue
};

/// The period: trainers without pause; workers with full slots (as many rollouts as admission lets start); the loop
/// over K + 1 updates. The variance: of samples spread evenly over the buffer's horizon, repeats and coupling included,
/// or of a queue's mean staleness. These are bounds to first order only: they take mean-field service times, so the
/// search measures by how much they are missed (plan.h).
PlanBound plan_bound(const Calibration& calibration, const PlanDesign& design);

/// Updates before a design has settled: those in which its store is renewed, and some.
std::int64_t plan_warmup(const PlanDesign& design, const PlanBound& bound);

}  // namespace millrace
