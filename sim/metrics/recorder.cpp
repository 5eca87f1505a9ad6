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
    histograms_on_ = histogram_start <= 0;
}

void Recorder::end_batch() {
    for (std::size_t level = 0; level < batch_samples_.size(); ++level) {
        const std::int64_t samples = batch_samples_[level];
        const auto staleness = static_cast<std::int64_t>(level);
        total_.samples += samples;
        total_.staleness += samples * staleness;
        total_.staleness_squared += samples * staleness * staleness;
        if (samples > 0 && histograms_on_) {
            record_.staleness.add(staleness, static_cast<std::uint64_t>(samples));
        }
    }
    total_.new_samples += batch_last_uses_[0];
    for (std::size_t since = 1; since < batch_last_uses_.size(); ++since) {
        const std::int64_t samples = batch_last_uses_[since];
        const std::int64_t steps = static_cast<std::int64_t>(since) - 1;
        total_.last_use_steps += samples * steps;
        if (samples > 0 && histograms_on_) {
            record_.steps_since_last_use.add(steps, static_cast<std::uint64_t>(samples));
        }
    }
    if (noise_) {
        total_.relative_variance += noise_->relative_variance(batch_samples_, batch_repeats_);
    }
    std::fill(batch_samples_.begin(), batch_samples_.end(), 0);
    std::fill(batch_repeats_.begin(), batch_repeats_.end(), 0);
    std::fill(batch_last_uses_.begin(), batch_last_uses_.end(), 0);
}

void Recorder::end_update(Time now, const WorkerClock& workers, const TrainerClock& trainers,
                          const StationFlow& running, const StationFlow& store) {
    total_.at = now;
    total_.worker_ns = workers.spent_ns(now);
    total_.trainer_ns = trainers.spent_ns(now);
    total_.running_presence_s = running.presence_s(now);
    total_.store_presence_s = store.presence_s(now);
    record_.updates.push_back(total_);
    histograms_on_ = updates() >= record_.histogram_start;
}

}  // namespace millrace
