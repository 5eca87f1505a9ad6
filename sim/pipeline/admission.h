// Admission control: a token bucket in front of the workers (config.h, AdmissionConfig).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/pipeline/config.h"

namespace millrace {

class Admission {
   public:
    /// first_batch: rollouts that must start before the first update can begin, in whole groups. The bucket is opened
    /// wide enough for them once; a buffer that each update refreshes with fewer could not fill otherwise.
    Admission(const std::optional<AdmissionConfig>& config, std::int64_t first_batch) {
        if (config) {
            per_update_ = config->rollouts_per_update;
            tokens_ = config->steps_ahead * per_update_ + std::max(per_update_, first_batch);
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
