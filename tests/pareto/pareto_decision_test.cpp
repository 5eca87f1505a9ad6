#include "sim/pareto/pareto_decision.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "tests/pareto/synthetic_study.h"

using namespace millrace;
using namespace millrace_test;

namespace {

std::vector<Membership> memberships(const std::vector<ObjectiveSamples>& samples, DecisionRules rules = {}) {
    std::vector<Membership> result;
    for (const MembershipDecision& decision : decide_membership(samples, rules)) {
        result.push_back(decision.membership);
    }
    return result;
}

struct Errors {
    int studies_with_one = 0;
    double decided_share = 0.0;
};

/// Decisions of many studies held against their truth.
template <typename MakeStudy>
Errors errors_over(int studies, MakeStudy make, const ReplicationPlan& plan, DecisionRules rules) {
    Errors errors;
    for (int s = 0; s < studies; ++s) {
        const SyntheticStudy study = make(static_cast<std::uint64_t>(s));
        const std::vector<bool> truth = study.on_front();
        const auto decided = memberships(study.samples(plan), rules);
        bool wrong = false;
        for (std::size_t i = 0; i < truth.size(); ++i) {
            wrong = wrong || decided[i] == (truth[i] ? Membership::out : Membership::in);
            errors.decided_share +=
                decided[i] == Membership::undecided ? 0.0 : 1.0 / (studies * static_cast<double>(truth.size()));
        }
        errors.studies_with_one += wrong;
    }
    return errors;
}

/// What a binomial count exceeds, or falls short of, once in ten thousand cases.
double slack(int trials, double share) {
    return 3.8 * std::sqrt(trials * share * (1.0 - share));
}

constexpr Membership in = Membership::in;
constexpr Membership out = Membership::out;
constexpr Membership undecided = Membership::undecided;

}  // namespace

TEST_CASE("what differs by rounding alone is equal") {
    // The last bit of a metric may depend on how long a run was; on the other objective the second is clearly better.
    const double cost = 0.3184713375796178;
    const double same_cost = std::nextafter(cost, 1.0);
    const ObjectiveSamples worse{{{cost, cost, cost}, {1.11, 1.12, 1.13}}};
    const ObjectiveSamples better{{{same_cost, same_cost, same_cost}, {1.05, 1.06, 1.07}}};
    CHECK(memberships({worse, better}) == std::vector{out, in});
}

TEST_CASE("differences without variance are decided exactly") {
    const ObjectiveSamples good{{{1.0, 1.0}, {3.0, 5.0}}};
    const ObjectiveSamples copy = good;
    const ObjectiveSamples dearer{{{1.5, 1.5}, {3.0, 5.0}}};              // equal in one, worse in the other: dominated
    const ObjectiveSamples staler_and_cheaper{{{0.5, 0.5}, {4.0, 6.0}}};  // by exactly 1 in each replication
    CHECK(memberships({good, copy, dearer, staler_and_cheaper}) == std::vector{in, in, out, in});
    const auto decisions = decide_membership(std::vector{good, dearer}, {});
    CHECK(std::isinf(decisions[0].margin));
    CHECK(std::isinf(decisions[1].margin));
    CHECK(decisions[1].rival == 0);
    CHECK_FALSE(decisions[1].leads_by_means);
}

TEST_CASE("an exact objective leaves its share of the level to the random ones") {
    // Design 1 costs more, exactly. Whether it is staler is what noise leaves open.
    const std::vector<double> noise = {0.3, -0.1, 0.2, -0.4, 0.1, -0.2, 0.25, -0.15};
    ObjectiveSamples cheap{{std::vector<double>(8, 1.0), {}}};
    ObjectiveSamples dear{{std::vector<double>(8, 2.0), {}}};
    for (const double x : noise) {
        cheap.values[1].push_back(5.0);
        dear.values[1].push_back(4.8 + x);
    }
    CHECK(memberships({cheap, dear}) == std::vector{in, undecided});
    for (double& x : dear.values[1]) {
        x -= 0.5;
    }
    CHECK(memberships({cheap, dear}) == std::vector{in, in});
    for (double& x : dear.values[1]) {
        x += 2.0;
    }
    CHECK(memberships({cheap, dear}) == std::vector{in, out});
}

TEST_CASE("one replication decides nothing, and a lonely design is on its front") {
    const ObjectiveSamples a{{{1.0}, {1.0}}};
    const ObjectiveSamples b{{{2.0}, {2.0}}};
    CHECK(memberships({a, b}) == std::vector{undecided, undecided});
    CHECK(memberships({a}) == std::vector{in});
    const ObjectiveSamples longer{{{1.0, 1.1, 0.9}, {1.0, 1.1, 0.9}}};
    CHECK(memberships({longer, b}) == std::vector{undecided, undecided});  // one replication in common
    // What it does say is which of two leads.
    for (const ObjectiveSamples& other : {a, longer}) {
        const auto decisions = decide_membership(std::vector{other, b}, {});
        CHECK(decisions[0].leads_by_means);
        CHECK_FALSE(decisions[1].leads_by_means);
    }
    const ObjectiveSamples copy = a;
    for (const MembershipDecision& decision : decide_membership(std::vector{a, copy}, {})) {
        CHECK(decision.leads_by_means);
    }
}

TEST_CASE("designs without values are compared with nothing") {
    const ObjectiveSamples a{{{1.0, 1.0}, {1.0, 1.0}}};
    const ObjectiveSamples b{{{2.0, 2.0}, {2.0, 2.0}}};
    const auto decisions = decide_membership(std::vector{a, ObjectiveSamples{}, b}, {});
    CHECK(decisions[0].membership == in);
    CHECK_FALSE(decisions[1].compared);
    CHECK(decisions[2].membership == out);
}

TEST_CASE("pairs are compared over the replications that both have") {
    const SyntheticStudy study{7, {{0.0, 0.0, 0.0}, {1.0, 1.0, 0.0}, {-1.0, 2.0, 0.0}}, 2, 0.2, 0.9};
    auto samples = study.samples(equal_plan(12));
    const auto before = decide_membership(samples, {});
    for (auto& values : samples[0].values) {
        values.push_back(1e6);  // a replication that no other design has
    }
    const auto after = decide_membership(samples, {});
    for (std::size_t i = 0; i < samples.size(); ++i) {
        CHECK(after[i].membership == before[i].membership);
        CHECK(after[i].margin == before[i].margin);
    }
    CHECK(memberships(samples) == std::vector{in, out, in});
}

TEST_CASE("for equal replications the designs that lead by means are the front of the means") {
    for (std::uint64_t s = 0; s < 50; ++s) {
        const auto samples = scattered_study(s, 30).samples(equal_plan(6));
        std::vector<ObjectivePoint> means;
        for (const ObjectiveSamples& design : samples) {
            ObjectivePoint& point = means.emplace_back();
            for (std::size_t j = 0; j < 2; ++j) {
                for (const double x : design.values[j]) {
                    point[j] += x / 6.0;
                }
            }
        }
        std::vector<std::size_t> leaders;
        const auto decisions = decide_membership(samples, {});
        for (std::size_t i = 0; i < decisions.size(); ++i) {
            if (decisions[i].leads_by_means) {
                leaders.push_back(i);
            }
            CHECK((decisions[i].membership != out || !decisions[i].leads_by_means));
            CHECK((decisions[i].membership != in || decisions[i].leads_by_means));
            CHECK((decisions[i].margin >= 1.0) == (decisions[i].membership != undecided));
        }
        CHECK(leaders == pareto_front(means));
    }
}

TEST_CASE("a wrong 'out' is as frequent as its level says, where it is easiest") {
    // Design 1 is worse than design 0 in one objective and better in the other by next to nothing, so it is on the
    // front and goes "out" when that other one happens to look worse with confidence: (1 - confidence) / 2 designs / 1
    // rival.
    constexpr int studies = 4000;
    const Errors errors = errors_over(studies,
                                      [](std::uint64_t s) {
                                          return SyntheticStudy{s, {{0.0, 0.0, 0.0}, {9.0, -1e-9, 0.0}}, 2, 0.1, 0.5};
                                      },
                                      equal_plan(8), {.confidence = 0.90});
    CHECK(std::abs(errors.studies_with_one - 0.05 * studies) < slack(studies, 0.05));
}

TEST_CASE("a wrong 'in' is as frequent as its level says, where it is easiest") {
    // Design 1 is dominated by next to nothing in each objective. It goes "in" when either looks better with
    // confidence: two independent chances of (1 - confidence) / 2 designs / 2 objectives. Design 0 has to be left out
    // of the count: it goes "out" only if both look better.
    constexpr int studies = 4000;
    const Errors errors = errors_over(studies,
                                      [](std::uint64_t s) {
                                          return SyntheticStudy{s, {{0.0, 0.0, 0.0}, {1e-9, 1e-9, 0.0}}, 2, 0.1, 0.5};
                                      },
                                      equal_plan(8), {.confidence = 0.90});
    const double expected = 1.0 - 0.975 * 0.975 + 0.05 * 0.05;
    CHECK(std::abs(errors.studies_with_one - expected * studies) < slack(studies, expected));
}

TEST_CASE("all decisions of a study are right with the stated confidence") {
    constexpr int studies = 300;
    for (const double correlation : {0.0, 0.8}) {
        const auto make = [&](std::uint64_t s) {
            SyntheticStudy study = scattered_study(s, 14);
            study.noise = 0.03;
            study.correlation = correlation;
            // Near ties: a shadow of each of the first designs, a hair better or worse.
            for (std::size_t i = 0; i < 6; ++i) {
                ObjectivePoint shadow = study.truth[i];
                shadow[0] += i % 2 == 0 ? 1e-6 : -1e-6;
                shadow[1] += i % 3 == 0 ? 1e-6 : -1e-6;
                study.truth.push_back(shadow);
            }
            return study;
        };
        for (const ReplicationPlan& plan : {equal_plan(20), ReplicationPlan{8, 40, 20 * 20}}) {
            const Errors errors =
                errors_over(studies, make, plan, {.confidence = 0.95, .looks = replication_looks(plan)});
            INFO("correlation ", correlation, ", at most ", plan.most, " replications, decided ", errors.decided_share);
            CHECK(errors.studies_with_one <= 0.05 * studies + slack(studies, 0.05));
            CHECK(errors.decided_share > 0.2);
        }
    }
}

TEST_CASE("three objectives need three agreeing tests to be out and one to be in") {
    SyntheticStudy study{3, {{0.0, 0.0, 0.0}, {1.0, 1.0, 1.0}, {2.0, 2.0, -1.0}, {1.0, 1.0, 1e-3}}, 3, 0.1, 0.7};
    CHECK(memberships(study.samples(equal_plan(15))) == std::vector{in, out, in, undecided});
}

TEST_CASE("samples that do not fit together are refused") {
    const ObjectiveSamples two{{{1.0, 1.0}, {1.0, 1.0}}};
    const ObjectiveSamples three{{{1.0, 1.0}, {1.0, 1.0}, {1.0, 1.0}}};
    const ObjectiveSamples ragged{{{1.0, 1.0}, {1.0}}};
    const ObjectiveSamples not_finite{{{1.0, std::nan("")}, {1.0, 1.0}}};
    for (const ObjectiveSamples& other : {three, ragged, not_finite}) {
        CHECK_THROWS_AS(decide_membership(std::vector{two, other}, {}), std::invalid_argument);
    }
    CHECK_THROWS_AS(decide_membership(std::vector{two}, {.confidence = 1.0}), std::invalid_argument);
}
