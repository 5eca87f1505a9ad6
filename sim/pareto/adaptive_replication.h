// Which designs of a sweep get the next replications: those of which it is most doubtful whether they are on the front.
//
// The choice is a pure function of the samples so far, so a sweep gives the same rows for any number of threads, shards
// or ranks, and one that was interrupted goes on as if it had not been. Theory nearby: OCBA and its relatives for
// several objectives (Chen and Lee; Lee et al. 2010; Branke and Zhang 2019); this is the simple member of the family.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/pareto/pareto_decision.h"

namespace millrace {

/// How many replications a design gets: `least` at first; then, while the budget lasts, more for designs of which it is
/// not decided whether they lie on the frontier, up to `most`. Equal for all designs when least == most.
struct ReplicationPlan {
    std::int64_t least = 10;
    std::int64_t most = 10;
    std::int64_t budget = 0;  ///< over all designs, the first `least` of each included; 0 when least == most
};

/// A block of replications to run, one row of the sweep's folder.
struct ReplicationBlock {
    std::size_t design = 0;  ///< index in the sweep
    std::int64_t first_replication = 0;
    std::int64_t replications = 0;

    bool operator==(const ReplicationBlock&) const = default;
};

/// What is there of one design.
struct DesignProgress {
    ObjectiveSamples samples;  ///< without values when it failed, or has none yet
    std::int64_t asked = 0;    ///< replications run so far, with or without success
    bool failed = false;       ///< gets no more
};

struct AdaptiveRules {
    double confidence = 0.95;
    std::int64_t block = 5;  ///< replications in a block after the first, whose size is the plan's `least`
    /// Designs that get a block in a round: one in this many, at least one and its rival. Rounds are what a runner can
    /// work on at once; small ones spend the budget better.
    std::int64_t designs_per_pick = 10;
};

/// The blocks of the next round, by index of design; none when the sweep is complete. The first round gives `least`
/// replications to all designs. Later ones go to designs that are undecided (pareto_decision.h): two in three to those
/// of the least margin, which are most likely on the wrong side now, every third to that of the greatest, which takes
/// least to decide (without it nearly all of a budget goes to ties, and few designs are decided in the end). A design
/// gets its block with the rival that sets its margin: whichever of the two has fewer replications, both when they have
/// equally many, as a pair is compared over what both have. Nobody gets more than `most`, and no block is begun that
/// the budget does not cover whole. Throws std::invalid_argument for a plan that is impossible: least < 1, most <
/// least, a budget below `least` for all designs when least < most, a block below 1.
std::vector<ReplicationBlock> next_blocks(std::span<const DesignProgress> designs, const ReplicationPlan& plan,
                                          const AdaptiveRules& rules = {});

/// The number of sample sizes a design can end with under this plan: DecisionRules::looks.
std::int64_t replication_looks(const ReplicationPlan& plan, const AdaptiveRules& rules = {});

}  // namespace millrace
