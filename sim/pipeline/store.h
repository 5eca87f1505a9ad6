// The seam between the two kinds of store: a transfer queue consumes rollouts, a replay buffer keeps them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/random.h"
#include "sim/pipeline/rollout.h"

namespace millrace {

class Store {
   public:
    virtual ~Store() = default;

    /// Whether a group of this many rollouts can enter now.
    virtual bool has_room(std::int64_t rollouts) const = 0;

    /// Adds rollouts, oldest first; appends the ones that had to go to `removed`. Requires has_room().
    virtual void put(std::span<const RolloutIndex> rollouts, std::vector<RolloutIndex>& removed) = 0;

    virtual bool can_fill_batch() const = 0;

    /// Appends the batch of the update that starts from policy version `version` to `batch`, and the rollouts that
    /// left the store by being used to `consumed`. Requires can_fill_batch().
    virtual void draw_batch(std::int64_t version, std::vector<RolloutIndex>& batch,
                            std::vector<RolloutIndex>& consumed) = 0;

    virtual std::int64_t size() const = 0;
};

}  // namespace millrace
