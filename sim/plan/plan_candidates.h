// The designs of a plan with what is known about each so far: bounds at first, then ever more simulations.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sim/plan/plan.h"

namespace millrace {

struct PlanCandidate {
    PlanBound bound;
    double objective_bound = std::numeric_limits<double>::infinity();
    PlanEvaluation evaluation;
    double objective = std::numeric_limits<double>::infinity();  ///< mean over the runs at hand

    bool simulated() const { return !evaluation.runs.empty(); }
    bool tried() const { return simulated() || !evaluation.error.empty(); }
};

class PlanCandidates {
   public:
    /// Throws PlanInterrupted, as simulate does.
    PlanCandidates(const Calibration& calibration, const PlanQuestion& question, const PlanEvaluator& evaluate,
                   const PlanControl& control);

    std::size_t size() const { return candidates_.size(); }
    const PlanCandidate& operator[](std::size_t i) const { return candidates_[i]; }
    std::size_t index_of(const PlanDesign& design) const { return index_.at(design); }

    /// Simulates what is missing, so that each of these has `replications` runs of `updates` measured updates (or more
    /// runs, or an error). Runs of another length are thrown away.
    void simulate(const std::vector<std::size_t>& which, std::int64_t updates, std::int64_t replications);

    /// By how much a simulated design exceeds a limit on staleness, in versions; not positive if it meets them all.
    double violation(std::size_t i) const;
    /// Whether it has been simulated and meets them all.
    bool feasible(std::size_t i) const { return candidates_[i].simulated() && !(violation(i) > 0.0); }
    /// Whether it may meet them all, as few short runs go: a limit s counts as s (1 + slack) + slack, or up to three
    /// times that slack where the interval of the estimate reaches so far.
    bool may_meet_limits(std::size_t i, double slack) const;

    /// Objective of i over that of `reference`, less 1, from the replications that both have.
    Estimate excess(std::size_t i, std::size_t reference) const;
    Estimate objective(std::size_t i) const;
    /// The one with the least objective; the first of equals.
    std::size_t best_of(const std::vector<std::size_t>& designs) const;

   private:
    struct Limit {
        const char* metric;
        double most;
    };

    void heed_interrupt() const;
    std::vector<double> objectives(std::size_t i) const;

    const Calibration& calibration_;
    const PlanQuestion& question_;
    const PlanEvaluator& evaluate_;
    const PlanControl& control_;
    std::vector<Limit> limits_;
    std::vector<PlanCandidate> candidates_;
    std::map<PlanDesign, std::size_t> index_;
};

}  // namespace millrace
