// A scenario's pipeline as a timed marked graph (sim/theory/marked_graph.h), at two grains.
//
// rollout_graph: one vertex per rollout start. Every duration is the mean of its law. If all laws are constant and
// `approximations` is empty, the long-run update period of the simulation *is* the largest cycle ratio, whole-number
// effects included (65 rollouts on 16 slots take five rounds). Exactly represented are
//   - workers x slots, where a rollout's time does not depend on what runs beside it: one slot per worker under any
//     law; several slots under a step law with a base time only, if every other time is a whole number of steps (a
//     rollout joins a running batch at a step boundary); a memory cap (it limits the slots);
//   - groups of any size, also where the batch is not a whole number of them;
//   - grading, at once or on a number of servers; trainers under every law;
//   - transfer queues in every order that never run full, or that block if rollouts are graded at once and not grouped;
//   - admission with any steps_ahead; weight synchronisation every k updates with between_rollouts, or in_place where
//     nothing is in flight then (0 steps ahead), with trainers that wait or transfers no longer than an update, at
//     least every 1,000 updates;
//   - replay buffers: the trainers run on their own once it is filled; with fresh_per_update = rollouts_per_update and
//     0 steps ahead (the synchronous model, each update on at least one batch of fresh rollouts at first) they wait for
//     the fresh rollouts.
// Whatever else a scenario has makes the graph a lower bound on the period of the pipeline with those constant times,
// and `approximations` says what. In particular, if a worker slows down with the rollouts it runs, a rollout takes at
// least its time alone, its own part of the work is done one after another, and a worker with full slots cannot make
// more than its mean-field rate (theory/compute_ratio.h).
//
// batch_graph: one vertex per batch. Its period is a lower bound for service times of *any* spread with these means,
// dispatched to the first free slot. (The finer graph is none: with 65 rollouts on 16 slots a little spread lets the
// last rollout begin before the fourth round is over.) It rests on: the trainers' own time; what W workers with full
// slots can make; and that all of a batch's rollouts that were only permitted by an update must be generated, graded
// and trained on before the loop over steps_ahead + 1 updates closes, which takes W workers at least their work, and
// any of them at least its time alone. The distance of the simulated period from it is the price of variability.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/pipeline/config.h"
#include "sim/theory/marked_graph.h"

namespace millrace {

struct PipelineGraph {
    MarkedGraph graph;
    MarkedGraph::Vertex update = 0;          ///< "update begins"; one of them
    MarkedGraph::Vertex generation = 0;      ///< a firing of the workers
    std::int64_t updates = 1;                ///< that one round of the graph makes
    std::int64_t rollouts = 1;               ///< that one round of the graph needs, or makes if the trainers never wait
    bool trainers_wait_for_rollouts = true;  ///< false: a replay buffer decouples them
    bool constant_times = true;              ///< no law of the scenario has any spread
    std::vector<std::string> approximations;  ///< why the graph is a lower bound only; each half a sentence
    bool exact() const { return constant_times && approximations.empty(); }
};

/// Throws std::length_error where weight_sync.every, the batch and the groups repeat together only after more than a
/// million rollouts (updates, in the graph of batches).
PipelineGraph rollout_graph(const PipelineConfig& config);
PipelineGraph batch_graph(const PipelineConfig& config);

/// What the edges of these graphs stand for: the indices of MarkedGraph::activities.
namespace activity {
enum : MarkedGraph::Activity {
    generation,  ///< a rollout is generated
    full_slots,  ///< all workers generate with full slots
    grading,
    update,
    transfer,    ///< of weights to the workers
    slot,        ///< waits for a free slot
    permission,  ///< waits for admission
    room,        ///< waits for room in the store
    batch,       ///< waits for rollouts
    order        ///< comes after
};
}  // namespace activity

}  // namespace millrace
