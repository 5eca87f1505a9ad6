// What a sweep has to simulate: rounds of blocks, each block some replications of one design.
//
// A round follows from the rows of the rounds before it and from nothing else, so every process that looks at the same
// rows comes to the same one: threads, shards and ranks need not talk about what is to be done, only about who does it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/pareto/adaptive_replication.h"
#include "sim/sweep/design.h"
#include "sim/sweep/row_collection.h"

namespace millrace {

struct Round {
    std::int64_t number = 1;               ///< from 1
    std::vector<ReplicationBlock> blocks;  ///< those that take longest first
    std::vector<bool> done;                ///< by block: its row is there
    std::int64_t earlier_blocks = 0;       ///< of the rounds before it, all done
    std::size_t missing() const;
};

/// Goes from round to round as their rows come in: first `least` replications of the designs of the file, then of each
/// wave of designs that the sweep adds (sweep_growth.h), then more for those that are not decided.
class SweepRounds {
   public:
    /// Designs that the rows call for are added to `sweep`, which lacks them so far.
    explicit SweepRounds(Sweep& sweep);

    /// The first round of which rows are missing; none when the sweep is complete. `rows` are those of the last call
    /// and more. Throws std::runtime_error when rows are there that no plan of this sweep would make.
    std::optional<Round> open_round(RowCollection& rows);

   private:
    Sweep& sweep_;
    std::vector<DesignProgress> progress_;  ///< by design, after the rounds before this one
    bool has_all_designs_;
    Round round_;
};

/// What a block takes, in arbitrary units that are about an event of the simulation.
double expected_cost(const Scenario& scenario, std::int64_t replications);

/// Whether shard `shard` of `shards`, counted from 1, has the block at this place of a round. Neighbours in the order
/// of cost go to different shards.
inline bool is_of_shard(std::size_t place, std::int64_t shard, std::int64_t shards) {
    return static_cast<std::int64_t>(place % static_cast<std::size_t>(shards)) == shard - 1;
}

}  // namespace millrace
