// Runs a sweep: blocks of replications over threads, over the shards of a job array or over processes that share work.
//
// Every block that is done is a row in a file of the sweep's folder. Whatever ends the process, the next start goes on
// from the rows that are there; the rows are the same for every number of threads, shards and ranks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/run/replications.h"
#include "sim/sweep/design.h"
#include "sim/sweep/rounds.h"

namespace millrace {

/// Processes that share the blocks of a sweep: each takes the next block when it is free. All of them call start_round
/// and any at the same points; the others are called from any thread. Made by tools/millrace/mpi for ranks of MPI.
struct SharedWork {
    std::int64_t rank = 0;
    std::int64_t ranks = 1;
    std::function<void()> start_round;         ///< all together: the next ticket is 0
    std::function<std::size_t()> next_ticket;  ///< 0, 1, 2, ...: each number goes to one caller of one process
    std::function<void()> no_more_tickets;     ///< for any process in this round
    std::function<bool(bool)> any;             ///< all together: whether it is true in one of them
    std::function<void()> tick;                ///< called ten times a second while there is work
};

struct SweepProgress {
    double share = 0.0;  ///< of the work of this round that was not done before, in [0, 1]
    std::int64_t round = 1;
    std::int64_t blocks_left = 0;  ///< not begun yet
};

struct SweepRunOptions {
    std::int64_t jobs = 1;                         ///< threads
    const std::atomic<bool>* interrupt = nullptr;  ///< when it turns true, blocks in progress are given up
    std::int64_t shard = 1;                        ///< of `shards`, counted from 1: only every shards-th block is run
    std::int64_t shards = 1;
    const SharedWork* work = nullptr;  ///< none: this process is alone
    /// Called once, with the number of rows that are there already.
    std::function<void(std::int64_t)> begun = nullptr;
    /// Called from the caller's thread about ten times a second.
    std::function<void(const SweepProgress&)> progress = nullptr;
    /// Simulates the replications of one block, with one thread; called from several threads at once. Designs that have
    /// a learner need one that makes learners and adds what they have learnt to RunResult::samples, infinity where a
    /// target was never reached, with the reason in RunResult::undefined.
    ///
    /// What the design itself is at fault for becomes a row: PipelineStuck, std::range_error, std::overflow_error and
    /// std::length_error. Any other exception ends the sweep: memory, files and devices are not the design's.
    std::function<RunResult(const Scenario&, const RunOptions&)> simulate = run_replications;
};

struct SweepOutcome {
    bool interrupted = false;
    std::int64_t blocks = 0;         ///< simulated by this process
    std::int64_t replications = 0;   ///< simulated by this process
    std::int64_t blocks_before = 0;  ///< that were there when it started
    std::optional<Round> open;       ///< what other shards have still to do, or this process after an interrupt
};

/// The file of the folder that this process appends to: runs.jsonl, runs-2-of-5.jsonl or runs-rank-0-of-4.jsonl.
std::string rows_file_name(const SweepRunOptions& options);

/// Runs what is missing of the sweep in `folder`, which is there; a shard runs its part of a round, and goes on with
/// the next round when all other shards' rows are there. Throws std::runtime_error when rows cannot be read or written,
/// and ScenarioError for a file with a line that is no row.
SweepOutcome run_sweep(const Sweep& sweep, const std::string& folder, const SweepRunOptions& options);

}  // namespace millrace
