// What one replication has counted up to the end of an update. All sums run from time zero, so any window of updates
// is the difference of two records.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/engine/time.h"
#include "sim/metrics/histogram.h"

namespace millrace {

struct UpdateRecord {
    Time at;  ///< when the update ended

    // Over the samples that updates used; a rollout drawn twice is two samples. Staleness is in policy versions.
    std::int64_t samples = 0;
    std::int64_t staleness = 0;
    std::int64_t staleness_squared = 0;
    std::int64_t pre_store = 0;        ///< part of the staleness that arose before the store
    std::int64_t group_staleness = 0;  ///< counted from the first token of the sample's group
    std::int64_t unique_samples = 0;   ///< distinct rollouts within each batch
    std::int64_t new_samples = 0;      ///< first uses
    std::int64_t last_use_steps = 0;   ///< steps since last use, over samples that are not new
    std::int64_t tokens = 0;           ///< prompt and response tokens of the samples
    double relative_variance = 0.0;    ///< noise of each batch relative to an on-policy one, summed over updates

    // Rollouts that left the store without ever having been used.
    std::int64_t dropped = 0;
    std::int64_t dropped_staleness = 0;

    std::int64_t generated = 0;  ///< rollouts that workers finished
    std::int64_t stored = 0;     ///< rollouts that entered the store
    double store_presence_s = 0.0;
    double running_presence_s = 0.0;  ///< rollouts on workers, integrated over time

    std::array<Int128, 4> worker_ns{};   ///< by WorkerState
    std::array<Int128, 3> trainer_ns{};  ///< by TrainerState
};

/// Everything one replication leaves behind.
struct ReplicationRecord {
    std::vector<UpdateRecord> updates;  ///< [u] is the state after update u + 1
    std::int64_t histogram_start = 0;   ///< the histograms cover the updates after this many
    Histogram staleness;
    Histogram replay_count;  ///< uses of each rollout that left the store
    Histogram steps_since_last_use;
    std::uint64_t events = 0;
    std::uint64_t order_digest = 0;
};

}  // namespace millrace
