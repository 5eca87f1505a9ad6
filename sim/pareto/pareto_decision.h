// Which designs are on the Pareto front, decided from replications under common random numbers, with confidence.
//
// Replication r of every design has the same random streams, so two designs are compared by the differences of their
// paired replications. With true means m, less being better, design q dominates d when m_q <= m_d in all objectives and
// m_q < m_d in one; d is on the front when none does. Each design is decided
//
//   out        when for one other design q each objective has q better by a one-sided paired Student-t test (or exactly
//              equal, see below). All objectives have to agree, so each is tested at the full level of q
//              (intersection-union); any q will do, so that level is the design's divided by its number of candidate
//              dominators (Bonferroni);
//   in         when every other design q is worse than it in at least one objective by such a test, or exactly equal
//              in all. One objective will do, so the design's level is divided by their number; every q has to fail, so
//              there is no correction over q: a wrong "in" needs the test against the design's true dominator to err;
//   undecided  otherwise, and always for a pair with fewer than two common replications: one difference shows no
//              scatter, so nothing tells a true difference from noise or a certain value from a random one.
//
// A design is truly on the front or it is not, so one of the two errors is open to it and each kind gets its whole
// level, which is (1 - confidence) / (designs x looks). Summed over the designs: with probability of at least
// `confidence` ALL decisions are right at once. Holm's step-down is not used: within a design it changes nothing (the
// smallest p-value decides), and over designs its proof does not cover claims in two directions.
//
// `looks` is for replications that were allotted by what earlier ones showed: then a pair may be judged at any of so
// many sample sizes, and the error is bounded at each of them (replication_looks in adaptive_replication.h). With equal
// replications for all it is 1.
//
// Paired differences without any variance (closed forms such as compute/gamma; designs that behave alike, as when a
// buffer never fills) are exact: their sign decides, or they are equal, and they take no share of a level. A quantile
// that takes whole values, such as staleness/p99, can look exact in a few replications though it is not: means are
// better objectives.
//
// Student's t takes differences as normal; the tests ask for tails as far out as 1e-6, where means of few skewed
// differences are not quite. Bonferroni's slack under strongly correlated tests is there to absorb that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace millrace {

/// What the replications of one design say of the objectives, each turned so that less is better.
struct ObjectiveSamples {
    /// By objective, then by replication from 0 on; equally many of each. None at all: the design has no values (it
    /// failed) and is compared with nothing.
    std::vector<std::vector<double>> values;

    std::int64_t replications() const { return values.empty() ? 0 : static_cast<std::int64_t>(values.front().size()); }
};

enum class Membership { in, out, undecided };

inline constexpr std::size_t no_design = std::numeric_limits<std::size_t>::max();

struct MembershipDecision {
    bool compared = false;  ///< false for a design without values: then nothing else here means anything
    Membership membership = Membership::undecided;
    /// Whether no other design has means at least as good, over the replications that both have. "In" implies it, "out"
    /// excludes it. With equal replications: whether the design is on the front of the means.
    bool leads_by_means = false;
    /// The evidence for where the means put the design, by the evidence that a decision takes: 1 or more is decided, 0
    /// as doubtful as can be, infinite exact. For a design that leads by means, how clearly its nearest rival fails to
    /// dominate it; for another, how clearly its strongest rival dominates it.
    double margin = std::numeric_limits<double>::infinity();
    std::size_t rival = no_design;  ///< the design that sets the margin
};

struct DecisionRules {
    double confidence = 0.95;  ///< that all decisions are right
    std::int64_t looks = 1;    ///< sample sizes at which a pair may be judged
};

/// One decision per design. All designs with values have the same objectives, 2 or 3. Pairs with unequal numbers of
/// replications are compared over the first ones, which both have. Throws std::invalid_argument for a confidence
/// outside (0, 1), values that are not finite or samples that do not fit together. O(designs^2 x replications).
std::vector<MembershipDecision> decide_membership(std::span<const ObjectiveSamples> samples,
                                                  const DecisionRules& rules);

/// "in", "out" or "undecided".
const char* membership_name(Membership membership);

}  // namespace millrace
