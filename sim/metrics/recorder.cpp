#include "sim/metrics/recorder.h"

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

void Recorder::begin_batch() {
    if (noise_) {
        noise_->begin_batch();
    }
}

void Recorder::use(const SampleUse& sample) {
    ++total_.samples;
    total_.staleness += sample.staleness;
    total_.staleness_squared += sample.staleness * sample.staleness;
    total_.pre_store += sample.pre_store;
    total_.group_staleness += sample.group_staleness;
    total_.tokens += sample.tokens;
    total_.unique_samples += sample.earlier_in_batch == 0 ? 1 : 0;
    if (sample.since_last_use) {
        total_.last_use_steps += *sample.since_last_use;
    } else {
        ++total_.new_samples;
    }
    if (histograms_on()) {
        record_.staleness.add(sample.staleness);
        if (sample.since_last_use) {
            record_.steps_since_last_use.add(*sample.since_last_use);
        }
    }
    if (noise_) {
        noise_->add(sample.staleness, sample.earlier_in_batch);
    }
}

void Recorder::end_batch() {
    if (noise_) {
        total_.relative_variance += noise_->relative_variance();
    }
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
