// The trainers: T GPUs that compute one update after another together, data-parallel, each on its share of the batch.
#pragma once

#include <cstdint>

#include "sim/engine/random.h"
#include "sim/engine/time.h"
#include "sim/pipeline/config.h"

namespace millrace {

class Trainers {
   public:
    Trainers(const TrainersConfig& config, std::uint64_t seed, std::uint64_t replication);

    /// Wall time of the update that starts from policy version `version` on a batch of this many tokens.
    Duration service(std::int64_t version, std::int64_t batch_tokens) const;

   private:
    TrainersConfig config_;
    RandomStream stream_;
};

}  // namespace millrace
