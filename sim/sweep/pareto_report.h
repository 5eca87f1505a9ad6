// What a sweep has shown: every design's metrics, whether it is on the frontier, and what the frontier is worth.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/metrics/estimate.h"
#include "sim/pareto/hypervolume_estimate.h"
#include "sim/pareto/pareto_decision.h"
#include "sim/sweep/design.h"
#include "sim/sweep/design_record.h"
#include "sim/sweep/frontier_refinement.h"

namespace millrace {

struct ParetoOptions {
    double confidence = 0.95;  ///< that all decisions are right, and of the intervals of hypervolumes
    /// One value per objective, as it is measured (not turned); none: default_reference().
    std::optional<std::vector<double>> reference;
    std::size_t most_proposals = 3;  ///< new designs to propose
};

struct ParetoDesign {
    std::int64_t replications = 0;
    std::int64_t warmup_updates = 0;
    std::map<std::string, Estimate> metrics;       ///< with 95 % half-widths
    std::map<std::string, std::string> undefined;  ///< metrics without any value, and why
    bool incomplete = false;                       ///< see DesignRecord
    std::string error;                             ///< why it is compared with nothing; then there is no decision
    MembershipDecision decision;
};

struct ParetoReport {
    std::vector<double> reference;  ///< by objective, as it is measured
    HypervolumeEstimate hypervolume;
    std::vector<std::pair<std::string, HypervolumeEstimate>> families;  ///< in the order of the sweep, same reference
    std::vector<ParetoDesign> designs;                                  ///< as in the sweep
    Refinement refinement;
    double confidence = 0.95;
    std::int64_t looks = 1;  ///< see DecisionRules
};

/// Whether a design is one to look at: on the front of the means, or not yet known to be off it.
inline bool is_of_interest(const ParetoDesign& design) {
    return design.decision.compared &&
           (design.decision.leads_by_means || design.decision.membership != Membership::out);
}

/// Designs that the sweep has still to run, so that nothing here is final.
std::int64_t incomplete_designs(const ParetoReport& report);

/// Throws std::invalid_argument for a reference with another number of values than there are objectives.
ParetoReport pareto_report(const Sweep& sweep, std::span<const DesignRecord> records, const ParetoOptions& options);

}  // namespace millrace
