// Weight synchronisation: which policy version each worker holds, and which transfers are under way.
//
// Every k updates the trainers publish a version. A worker takes one transfer at a time; a version published meanwhile
// waits, and only the newest of those follows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/random.h"
#include "sim/engine/time.h"
#include "sim/pipeline/config.h"

namespace millrace {

class WeightSync {
   public:
    WeightSync(const WeightSyncConfig& config, std::int64_t workers, std::uint64_t seed, std::uint64_t replication);

    bool publishes(std::int32_t version) const { return version % config_.every == 0; }
    InFlight in_flight() const { return config_.in_flight; }
    bool trainers_wait() const { return config_.trainers_wait; }

    /// The newest version that worker `worker` has.
    std::int32_t version(std::size_t worker) const { return workers_[worker].version; }

    /// Version `version` is published. It returns `returns` admission tokens once every worker has it.
    void publish(std::int32_t version, std::int64_t returns);

    /// The transfer that worker `worker` can begin now: of the newest version published, if it lacks that and no
    /// transfer to it is under way. It takes the returned time; deliver() must follow then.
    std::optional<Duration> begin_transfer(std::size_t worker);

    /// The transfer to `worker` has ended. Returns the tokens of the versions that now every worker has.
    std::int64_t deliver(std::size_t worker);

    /// The versions that workers have or are about to get, in ascending order.
    std::vector<std::int32_t> versions_in_use() const;

    /// Whether some worker still lacks a published version.
    bool under_way() const { return !unfinished_.empty(); }

   private:
    struct Worker {
        std::int32_t version = 0;
        std::int32_t receiving = 0;  ///< the version of the transfer under way; 0: none
    };
    struct Published {
        std::int32_t version = 0;
        std::int64_t tokens = 0;
        std::size_t workers_left = 0;
    };

    WeightSyncConfig config_;
    std::vector<RandomStream> streams_;
    std::vector<Worker> workers_;
    std::int32_t newest_ = 0;
    std::vector<Published> unfinished_;  ///< oldest first
};

}  // namespace millrace
