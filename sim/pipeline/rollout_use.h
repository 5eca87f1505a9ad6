// What using a rollout in a batch means for its history.
#pragma once

#include <cstdint>

#include "sim/metrics/recorder.h"
#include "sim/pipeline/rollout.h"

namespace millrace {

/// The update that starts from policy version `version` uses the rollout, possibly not for the first time. Returns the
/// sample as the metrics see it. Steps since last use count as in the paper's section 2: used once in one batch and
/// three times in the batch two updates later, a rollout gives none, 2, 0, 0.
inline SampleUse use_rollout(Rollout& rollout, std::int32_t version) {
    SampleUse use;
    use.staleness = version - rollout.version_started;
    use.pre_store = rollout.version_stored - rollout.version_started;
    use.group_staleness = version - rollout.version_group;
    use.tokens = rollout.tokens;
    use.since_last_use = rollout.last_used >= 0 ? version - rollout.last_used : SampleUse::first_use;
    use.earlier_in_batch = rollout.last_used == version ? rollout.uses_in_batch : 0;
    rollout.last_used = version;
    rollout.uses_in_batch = use.earlier_in_batch + 1;
    ++rollout.uses;
    return use;
}

}  // namespace millrace
