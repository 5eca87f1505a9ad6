// What a pipeline says when it cannot make another update.
#include <string>

#include "sim/pipeline/pipeline.h"

namespace millrace {

void Pipeline::check_progress() const {
    if (!store_->can_fill_batch()) {
        throw PipelineStuck("a batch can never fill: " + std::to_string(stored_since_update_began_) +
                            " rollouts have entered the store since the last update began. " + explain());
    }
}

std::string Pipeline::explain() const {
    const PipelineFlows flows = this->flows();
    const auto count = [](std::int64_t n, const std::string& what) { return std::to_string(n) + " " + what; };
    std::string text = "After " + count(version_, "updates, at ") + std::to_string(seconds(now())) + " s, there are " +
                       count(flows.workers.present(), "rollouts on workers, ") +
                       count(flows.reward.present(), "in the reward stage, ") +
                       count(flows.assembly.present(), "waiting for their group or for room in the store, and ") +
                       count(store_->size(), "in the store (capacity ") + std::to_string(capacity(config_.store)) +
                       "); an update needs a batch of " + std::to_string(config_.trainers.batch);
    if (config_.trainers.fresh_per_update > 0) {
        text += ", " + count(stored_since_update_began_, "of the ") +
                count(config_.trainers.fresh_per_update, "fresh rollouts it waits for have come");
    }
    text += ".";
    if (!finished_groups_.empty()) {
        text += " Complete groups of " + count(config_.groups.size, "rollouts do not fit into the store:") +
                " raise store.capacity or let it drop the oldest.";
    } else if (admission_.limits() && admission_.tokens() <= 0) {
        text += " Admission has no tokens left (steps_ahead " + std::to_string(config_.admission->steps_ahead) +
                ", rollouts_per_update " + std::to_string(config_.admission->rollouts_per_update) +
                "), and only an update or a dropped rollout gives some back";
        text += flows.assembly.present() > 0 ? ": what was admitted does not complete enough groups of " +
                                                   std::to_string(config_.groups.size) + "."
                                             : ".";
    } else if (flows.workers.present() == 0) {
        text += " The next rollout needs " +
                count(source_.next().prompt_tokens + source_.next().tokens, "tokens of memory") +
                " and fits on no worker: raise workers.service.kv_cap_tokens or truncate workers.length.";
    } else {
        text += " The store's eviction leaves fewer rollouts than a batch.";
    }
    return text;
}

}  // namespace millrace
