// Counts what a replication does with its rollouts, update by update.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/metrics/batch_noise.h"
#include "sim/metrics/role_clock.h"
#include "sim/metrics/station_flow.h"
#include "sim/metrics/update_record.h"

namespace millrace {

/// One sample of a batch, seen when the update that uses it begins. Versions are policy versions.
struct SampleUse {
    static constexpr std::int64_t first_use = -1;

    std::int64_t staleness = 0;               ///< since the rollout's first token
    std::int64_t pre_store = 0;               ///< part of it before the rollout entered the store
    std::int64_t group_staleness = 0;         ///< since the first token of its group
    std::int64_t since_last_use = first_use;  ///< updates since the same rollout was used
    std::int32_t earlier_in_batch = 0;        ///< how often the same rollout is in this batch already
    std::int64_t tokens = 0;                  ///< prompt and response
};

class Recorder {
   public:
    Recorder(const std::optional<NoiseConfig>& noise, std::int64_t store_capacity);

    /// Room for this many updates; histograms leave out what happens before update `histogram_start` has ended.
    void expect(std::int64_t updates, std::int64_t histogram_start);

    void use(const SampleUse& sample) {
        // What depends on one small number alone is summed up when the batch is complete. Not a branch on whether the
        // rollout was used before: nobody can predict that.
        const auto level = static_cast<std::size_t>(sample.staleness);
        if (level >= batch_samples_.size()) {
            batch_samples_.resize(level + 1);
            batch_repeats_.resize(level + 1);
        }
        ++batch_samples_[level];
        batch_repeats_[level] += 2 * sample.earlier_in_batch;  // with each of the earlier ones, both ways round

        total_.pre_store += sample.pre_store;
        total_.group_staleness += sample.group_staleness;
        total_.tokens += sample.tokens;
        total_.unique_samples += sample.earlier_in_batch == 0 ? 1 : 0;

        const auto since = static_cast<std::size_t>(sample.since_last_use + 1);
        if (since >= batch_last_uses_.size()) {
            batch_last_uses_.resize(since + 1);
        }
        ++batch_last_uses_[since];
    }
    void end_batch();

    void generated() { ++total_.generated; }
    void stored(std::int64_t rollouts) { total_.stored += rollouts; }
    /// A rollout left the store for good after `uses` uses, `staleness` versions after its first token.
    void left_store(std::int32_t uses, std::int64_t staleness) {
        const std::int64_t dropped = uses == 0 ? 1 : 0;
        total_.dropped += dropped;
        total_.dropped_staleness += dropped * staleness;
        if (histograms_on_) {
            record_.replay_count.add(uses);
        }
    }

    void end_update(Time now, const WorkerClock& workers, const TrainerClock& trainers, const StationFlow& running,
                    const StationFlow& store);

    std::int64_t tokens() const { return total_.tokens; }
    std::int64_t updates() const { return static_cast<std::int64_t>(record_.updates.size()); }
    ReplicationRecord take() { return std::move(record_); }

   private:
    std::optional<BatchNoise> noise_;
    std::vector<std::int64_t> batch_samples_;  ///< of the batch at hand, by staleness
    std::vector<std::int64_t> batch_repeats_;  ///< ordered pairs of samples that are the same rollout, by staleness
    std::vector<std::int64_t> batch_last_uses_{0};  ///< samples by steps since last use plus 1; [0]: first uses
    UpdateRecord total_;
    ReplicationRecord record_;
    bool histograms_on_ = true;  ///< updates() has come to record_.histogram_start
};

}  // namespace millrace
