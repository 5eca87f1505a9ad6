// Admission control: a token bucket in front of the workers (config.h, AdmissionConfig).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/pipeline/config.h"

namespace millrace {

/// Rollouts, in whole groups, that must start before the first update can begin.
std::int64_t first_batch(const PipelineConfig& config);

/// Tokens that the bucket opens with. It is opened wide enough for the first batch once: a buffer that each update
/// refreshes with fewer rollouts could not fill otherwise.
inline std::int64_t opening_tokens(const AdmissionConfig& bucket, std::int64_t first_batch) {
    return bucket.steps_ahead * bucket.rollouts_per_update + std::max(bucket.rollouts_per_update, first_batch);
}

/// The same for a whole pipeline, which must have admission control.
inline std::int64_t opening_tokens(const PipelineConfig& config) {
    return opening_tokens(config.admission.value(), first_batch(config));
}

class Admission {
   public:
    Admission(const std::optional<AdmissionConfig>& config, std::int64_t first_batch) {
        if (config) {
            per_update_ = config->rollouts_per_update;
            tokens_ = opening_tokens(*config, first_batch);
        }
    }

    bool limits() const { return per_update_ > 0; }
    bool allows() const { return !limits() || tokens_ > 0; }
    /// What one update gives back; 0 where nothing is limited.
    std::int64_t per_update() const { return per_update_; }
    std::int64_t tokens() const { return tokens_; }

    void take() {
        if (limits()) {
            --tokens_;
        }
    }
    void give_back(std::int64_t tokens) {
        if (limits()) {
            tokens_ += tokens;
        }
    }

   private:
    std::int64_t per_update_ = 0;
    std::int64_t tokens_ = 0;
};

}  // namespace millrace
