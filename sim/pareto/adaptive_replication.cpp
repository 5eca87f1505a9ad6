#include "sim/pareto/adaptive_replication.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace millrace {
namespace {

void check(std::span<const DesignProgress> designs, const ReplicationPlan& plan, const AdaptiveRules& rules) {
    if (plan.least < 1 || plan.most < plan.least || rules.block < 1 || rules.designs_per_pick < 1) {
        throw std::invalid_argument("replications need 1 <= least <= most and blocks of at least one");
    }
    const auto first_round = static_cast<std::int64_t>(designs.size()) * plan.least;
    if (plan.least < plan.most && plan.budget < first_round) {
        throw std::invalid_argument("a budget of " + std::to_string(plan.budget) + " replications does not cover the " +
                                    std::to_string(first_round) + " of the first round");
    }
}

/// Hands out blocks while the budget lasts, at most one to each design.
class Round {
   public:
    Round(std::span<const DesignProgress> designs, const ReplicationPlan& plan, std::int64_t block)
        : designs_(designs), plan_(plan), block_(block), given_(designs.size(), 0), left_(plan.budget) {
        for (const DesignProgress& design : designs) {
            left_ -= design.asked;
        }
    }

    /// Whether the design has a block in this round now.
    bool give(std::size_t design) {
        if (given_[design] > 0) {
            return true;
        }
        const DesignProgress& progress = designs_[design];
        const std::int64_t size = std::min(block_, plan_.most - progress.asked);
        if (progress.failed || size < 1 || size > left_) {
            return false;
        }
        given_[design] = size;
        left_ -= size;
        return true;
    }

    std::vector<ReplicationBlock> blocks() const {
        std::vector<ReplicationBlock> result;
        for (std::size_t i = 0; i < given_.size(); ++i) {
            if (given_[i] > 0) {
                result.push_back({i, designs_[i].asked, given_[i]});
            }
        }
        return result;
    }

   private:
    std::span<const DesignProgress> designs_;
    const ReplicationPlan& plan_;
    std::int64_t block_;
    std::vector<std::int64_t> given_;
    std::int64_t left_;
};

}  // namespace

std::vector<ReplicationBlock> next_blocks(std::span<const DesignProgress> designs, const ReplicationPlan& plan,
                                          const AdaptiveRules& rules) {
    check(designs, plan, rules);
    std::vector<ReplicationBlock> first_round;
    for (std::size_t i = 0; i < designs.size(); ++i) {
        if (designs[i].asked == 0 && !designs[i].failed) {
            first_round.push_back({i, 0, plan.least});
        }
    }
    if (!first_round.empty() || plan.least == plan.most) {
        return first_round;
    }

    std::vector<ObjectiveSamples> samples;
    for (const DesignProgress& design : designs) {
        samples.push_back(design.failed ? ObjectiveSamples{} : design.samples);
    }
    const std::vector<MembershipDecision> decisions =
        decide_membership(samples, {rules.confidence, replication_looks(plan, rules)});
    std::vector<std::size_t> doubtful;
    for (std::size_t i = 0; i < decisions.size(); ++i) {
        if (decisions[i].compared && decisions[i].membership == Membership::undecided) {
            doubtful.push_back(i);
        }
    }
    std::stable_sort(doubtful.begin(), doubtful.end(),
                     [&](std::size_t a, std::size_t b) { return decisions[a].margin < decisions[b].margin; });

    Round round(designs, plan, rules.block);
    const std::size_t picks =
        std::max<std::size_t>(1, designs.size() / static_cast<std::size_t>(rules.designs_per_pick));
    std::size_t picked = 0;
    std::size_t most_doubtful = 0;
    std::size_t nearly_decided = doubtful.size();
    while (picked < picks && most_doubtful < nearly_decided) {
        const std::size_t design = doubtful[picked % 3 == 2 ? --nearly_decided : most_doubtful++];
        const std::size_t rival = decisions[design].rival;
        const std::int64_t own = designs[design].asked;
        const std::int64_t other = rival == no_design ? own : designs[rival].asked;
        bool helped = false;
        if (own <= other) {
            helped = round.give(design);
        }
        if (rival != no_design && other <= own) {
            helped = round.give(rival) || helped;
        }
        picked += helped ? 1 : 0;
    }
    return round.blocks();
}

std::int64_t replication_looks(const ReplicationPlan& plan, const AdaptiveRules& rules) {
    return 1 + (plan.most - plan.least + rules.block - 1) / rules.block;
}

}  // namespace millrace
