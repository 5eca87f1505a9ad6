#include "sim/pipeline/weight_sync.h"

#include <algorithm>

namespace millrace {

WeightSync::WeightSync(const WeightSyncConfig& config, std::int64_t workers, std::uint64_t seed,
                       std::uint64_t replication)
    : config_(config), workers_(static_cast<std::size_t>(workers)) {
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
        streams_.emplace_back(seed, replication, Purpose::weight_transfer, worker);
    }
}

void WeightSync::publish(std::int32_t version, std::int64_t returns) {
    newest_ = version;
    unfinished_.push_back({version, returns, workers_.size()});
}

std::optional<Duration> WeightSync::begin_transfer(std::size_t worker) {
    Worker& state = workers_[worker];
    if (state.receiving != 0 || state.version == newest_) {
        return std::nullopt;
    }
    state.receiving = newest_;
    Draw draw(streams_[worker], static_cast<std::uint64_t>(newest_));
    return duration_from_seconds(config_.transfer_s.sample(draw));
}

std::int64_t WeightSync::deliver(std::size_t worker) {
    Worker& state = workers_[worker];
    for (Published& published : unfinished_) {
        if (published.version > state.version && published.version <= state.receiving) {
            --published.workers_left;
        }
    }
    state.version = state.receiving;
    state.receiving = 0;

    std::int64_t tokens = 0;
    while (!unfinished_.empty() && unfinished_.front().workers_left == 0) {
        tokens += unfinished_.front().tokens;
        unfinished_.erase(unfinished_.begin());
    }
    return tokens;
}

std::vector<std::int32_t> WeightSync::versions_in_use() const {
    std::vector<std::int32_t> versions{newest_};
    for (const Worker& worker : workers_) {
        versions.push_back(worker.version);
        if (worker.receiving != 0) {
            versions.push_back(worker.receiving);
        }
    }
    std::sort(versions.begin(), versions.end());
    versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
    return versions;
}

}  // namespace millrace
