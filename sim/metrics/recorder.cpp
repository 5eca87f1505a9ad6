#include "sim/metrics/recorder.h"

#include <algorithm>

namespace millrace {

Recorder::Recorder(const std::optional<NoiseConfig>& noise, std::int64_t store_capacity) {
    if (noise) {
        noise_.emplace(*noise, store_capacity);
    }
}

void Recorder::expect(std::int64_t updates, std::int64_t histogram_start) {
    record_.updates.reserve(static_cast<std::size_t>(updates));
    record_.histogram_start = histogram_start;
}

void Recorder::use(const SampleUse& sample) {
    // What depends on staleness alone is summed up per level when the batch is complete.
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
    if (!sample.since_last_use) {
        ++total_.new_samples;
        return;
    }
    total_.last_use_steps += *sample.since_last_use;
    if (histograms_on()) {
        record_.steps_since_last_use.add(*sample.since_last_use);
    }
}

void Recorder::end_batch() {
    for (std::size_t level = 0; level < batch_samples_.size(); ++level) {
        const std::int64_t samples = batch_samples_[level];
        const auto staleness = static_cast<std::int64_t>(level);
        total_.samples += samples;
        total_.staleness += samples * staleness;
        total_.staleness_squared += samples * staleness * staleness;
        if (samples > 0 && histograms_on()) {
            record_.staleness.add(staleness, static_cast<std::uint64_t>(samples));
        }
    }
    if (noise_) {
        total_.relative_variance += noise_->relative_variance(batch_samples_, batch_repeats_);
    }
    std::fill(batch_samples_.begin(), batch_samples_.end(), 0);
    std::fill(batch_repeats_.begin(), batch_repeats_.end(), 0);
}

void Recorder::left_store(std::int32_t uses, std::int64_t staleness) {
    if (uses == 0) {
        ++total_.dropped;
        total_.dropped_staleness += staleness;
    }
    if (histograms_on()) {
        record_.replay_count.add(uses);
    }
}

void Recorder::end_update(Time now, const WorkerClock& workers, const TrainerClock& trainers,
                          const StationFlow& running, const StationFlow& store) {
    total_.at = now;
    total_.worker_ns = workers.spent_ns(now);
    total_.trainer_ns = trainers.spent_ns(now);
    total_.running_presence_s = running.presence_s(now);
    total_.store_presence_s = store.presence_s(now);
    record_.updates.push_back(total_);
}

}  // namespace millrace
