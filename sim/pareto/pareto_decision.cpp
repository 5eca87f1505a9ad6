#include "sim/pareto/pareto_decision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/metrics/student_t.h"

namespace millrace {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// How design d compares with q in one objective.
struct Difference {
    double t = 0.0;      ///< mean of q - d in standard errors: positive where d is better; +-infinity when exact
    bool exact = false;  ///< all paired differences are the same
    bool equal = false;  ///< and that is 0
};

/// Numbers that differ by rounding alone are equal: a difference that is the same in all replications counts as
/// certain.
constexpr double rounding = 1e-12;

double apart(double q, double d) {
    const double difference = q - d;
    return std::abs(difference) > rounding * std::max(std::abs(q), std::abs(d)) ? difference : 0.0;
}

Difference compare(std::span<const double> d, std::span<const double> q) {
    const std::size_t n = d.size();
    double sum = 0.0;
    bool same = true;
    const double first = apart(q[0], d[0]);
    for (std::size_t r = 0; r < n; ++r) {
        sum += apart(q[r], d[r]);
        same = same && apart(q[r], d[r]) == first;
    }
    Difference result;
    if (same) {
        result.exact = true;
        result.equal = first == 0.0;
        result.t = first > 0.0 ? infinite : first < 0.0 ? -infinite : 0.0;
        return result;
    }
    const auto count = static_cast<double>(n);
    const double mean = sum / count;
    double squares = 0.0;
    for (std::size_t r = 0; r < n; ++r) {
        const double deviation = apart(q[r], d[r]) - mean;
        squares += deviation * deviation;
    }
    result.t = mean / std::sqrt(squares / (count * (count - 1.0)));
    return result;
}

/// What a pair's objectives say together of whether q dominates d.
struct PairEvidence {
    std::int64_t common = 0;  ///< replications that both have
    std::size_t random = 0;   ///< objectives that are not exact
    double against = 0.0;     ///< largest t: how clearly q fails to dominate d somewhere
    double in_favour = 0.0;   ///< smallest -t: how clearly q dominates d everywhere
    bool impossible = false;  ///< q is exactly worse somewhere or exactly equal everywhere
    bool by_means = false;    ///< q dominates d by the means over these replications
};

PairEvidence examine(const ObjectiveSamples& d, const ObjectiveSamples& q) {
    PairEvidence pair;
    pair.common = std::min(d.replications(), q.replications());
    if (pair.common == 1) {  // no evidence, but it says which mean is smaller
        bool smaller = false;
        bool larger = false;
        for (std::size_t j = 0; j < d.values.size(); ++j) {
            const double difference = apart(q.values[j][0], d.values[j][0]);
            smaller = smaller || difference < 0.0;
            larger = larger || difference > 0.0;
        }
        pair.by_means = smaller && !larger;
    }
    if (pair.common < 2) {
        return pair;
    }
    const auto n = static_cast<std::size_t>(pair.common);
    std::size_t equal = 0;
    pair.against = -infinite;
    pair.in_favour = infinite;
    for (std::size_t j = 0; j < d.values.size(); ++j) {
        const Difference difference = compare(std::span(d.values[j]).first(n), std::span(q.values[j]).first(n));
        pair.random += difference.exact ? 0 : 1;
        if (difference.equal) {  // cannot show that d is better, and does not keep q from dominating
            ++equal;
            continue;
        }
        pair.against = std::max(pair.against, difference.t);
        pair.in_favour = std::min(pair.in_favour, -difference.t);
    }
    if (equal == d.values.size() || pair.against == infinite) {
        pair.impossible = true;
        pair.against = infinite;
        pair.in_favour = -infinite;
    }
    pair.by_means = pair.in_favour >= 0.0;
    return pair;
}

/// Critical values; many pairs share theirs.
class CriticalValues {
   public:
    double at(double tail, std::int64_t degrees) {
        const auto [known, is_new] = values_.try_emplace({tail, degrees}, 0.0);
        if (is_new) {
            known->second = student_t_quantile(tail, degrees);
        }
        return known->second;
    }

   private:
    std::map<std::pair<double, std::int64_t>, double> values_;
};

void check(std::span<const ObjectiveSamples> samples, const DecisionRules& rules) {
    if (!(rules.confidence > 0.0 && rules.confidence < 1.0) || rules.looks < 1) {
        throw std::invalid_argument("a decision needs a confidence between 0 and 1 and at least one look");
    }
    std::size_t objectives = 0;
    for (const ObjectiveSamples& design : samples) {
        if (design.values.empty()) {
            continue;
        }
        objectives = objectives == 0 ? design.values.size() : objectives;
        if (design.values.size() != objectives || objectives < 2 || objectives > 3) {
            throw std::invalid_argument("designs are compared by the same two or three objectives");
        }
        for (const std::vector<double>& values : design.values) {
            if (values.size() != design.values.front().size() ||
                !std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); })) {
                throw std::invalid_argument("every replication of a design needs a finite value of each objective");
            }
        }
    }
}

MembershipDecision decide(std::span<const ObjectiveSamples> samples, std::size_t d, double level,
                          CriticalValues& critical) {
    std::vector<PairEvidence> pairs;
    std::vector<std::size_t> rivals;
    for (std::size_t q = 0; q < samples.size(); ++q) {
        if (q != d && samples[q].replications() > 0) {
            const PairEvidence pair = examine(samples[d], samples[q]);
            if (!pair.impossible) {
                pairs.push_back(pair);
                rivals.push_back(q);
            }
        }
    }
    MembershipDecision result;
    result.compared = true;
    const auto candidates = static_cast<double>(pairs.size());
    // Evidence by what would be enough of it: from 1 on the pair is settled.
    double against = infinite;     // least over pairs: a design is in when none dominates it
    double in_favour = -infinite;  // greatest over pairs: it is out when one does
    std::size_t nearest = no_design;
    std::size_t strongest = no_design;
    result.leads_by_means = true;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const PairEvidence& pair = pairs[i];
        double needed_in = 1.0;
        double needed_out = 1.0;
        if (pair.common >= 2) {
            const std::int64_t degrees = pair.common - 1;
            needed_in = critical.at(level / static_cast<double>(std::max<std::size_t>(pair.random, 1)), degrees);
            needed_out = critical.at(level / candidates, degrees);
        }
        result.leads_by_means = result.leads_by_means && !pair.by_means;
        if (nearest == no_design || pair.against / needed_in < against) {
            nearest = rivals[i];
            against = pair.against / needed_in;
        }
        if (strongest == no_design || pair.in_favour / needed_out > in_favour) {
            strongest = rivals[i];
            in_favour = pair.in_favour / needed_out;
        }
    }
    result.membership = against >= 1.0 ? Membership::in : in_favour >= 1.0 ? Membership::out : Membership::undecided;
    result.margin = result.leads_by_means ? against : in_favour;
    result.rival = result.leads_by_means ? nearest : strongest;
    return result;
}

}  // namespace

std::vector<MembershipDecision> decide_membership(std::span<const ObjectiveSamples> samples,
                                                  const DecisionRules& rules) {
    check(samples, rules);
    const auto compared = std::count_if(samples.begin(), samples.end(),
                                        [](const ObjectiveSamples& design) { return design.replications() > 0; });
    const double level = (1.0 - rules.confidence) / (static_cast<double>(compared) * static_cast<double>(rules.looks));
    CriticalValues critical;
    std::vector<MembershipDecision> decisions(samples.size());
    for (std::size_t d = 0; d < samples.size(); ++d) {
        if (samples[d].replications() > 0) {
            decisions[d] = decide(samples, d, level, critical);
        }
    }
    return decisions;
}

const char* membership_name(Membership membership) {
    switch (membership) {
        case Membership::in:
            return "in";
        case Membership::out:
            return "out";
        case Membership::undecided:
            break;
    }
    return "undecided";
}

}  // namespace millrace
