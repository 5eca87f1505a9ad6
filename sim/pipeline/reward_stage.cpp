#include "sim/pipeline/reward_stage.h"

namespace millrace {

RewardStage::RewardStage(const RewardConfig& config, std::uint64_t seed, std::uint64_t replication)
    : latency_s_(config.latency_s),
      instant_(config.latency_s.maximum() == 0.0),
      stream_(seed, replication, Purpose::reward_latency),
      idle_servers_(config.servers) {}

std::optional<RewardStage::Started> RewardStage::arrive(RolloutIndex rollout, std::uint64_t id) {
    if (idle_servers_) {
        if (*idle_servers_ == 0) {
            waiting_.push_back({rollout, id});
            return std::nullopt;
        }
        --*idle_servers_;
    }
    return start({rollout, id});
}

std::optional<RewardStage::Started> RewardStage::finish() {
    if (!waiting_.empty()) {
        return start(waiting_.pop_front());
    }
    if (idle_servers_) {
        ++*idle_servers_;
    }
    return std::nullopt;
}

RewardStage::Started RewardStage::start(Waiting rollout) const {
    Draw draw(stream_, rollout.id);
    return {rollout.rollout, duration_from_seconds(latency_s_.sample(draw))};
}

}  // namespace millrace
