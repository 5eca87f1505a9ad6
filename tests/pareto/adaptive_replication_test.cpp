#include "sim/pareto/adaptive_replication.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/pareto/synthetic_study.h"

using namespace millrace;
using namespace millrace_test;

namespace {

/// Designs that the means, over what each pair has in common, put on the wrong side; mean of `studies`.
double misclassified(int studies, std::size_t designs, double noise, double correlation, const ReplicationPlan& plan) {
    double count = 0.0;
    for (int s = 0; s < studies; ++s) {
        SyntheticStudy study = scattered_study(static_cast<std::uint64_t>(s), designs);
        study.noise = noise;
        study.correlation = correlation;
        const std::vector<bool> truth = study.on_front();
        const auto decisions = decide_membership(study.samples(plan), {});
        for (std::size_t i = 0; i < truth.size(); ++i) {
            count += decisions[i].leads_by_means != truth[i];
        }
    }
    return count / studies;
}

}  // namespace

TEST_CASE("20 replications where they are needed tell more than 40 for every design") {
    constexpr int studies = 60;
    for (const auto& [noise, correlation] : {std::pair(0.08, 0.5), std::pair(0.15, 0.9), std::pair(0.03, 0.0)}) {
        const double equal_20 = misclassified(studies, 50, noise, correlation, equal_plan(20));
        const double equal_40 = misclassified(studies, 50, noise, correlation, equal_plan(40));
        const double adaptive = misclassified(studies, 50, noise, correlation, {5, 80, 50 * 20});
        INFO("noise ", noise, ", correlation ", correlation, ": equal 20 ", equal_20, ", equal 40 ", equal_40,
             ", adaptive 20 ", adaptive);
        CHECK(equal_40 < equal_20);
        CHECK(adaptive < equal_40);
    }
}

TEST_CASE("the first round is equal, later ones respect budget, bounds and blocks") {
    SyntheticStudy study = scattered_study(5, 30);
    study.noise = 0.2;
    const ReplicationPlan plan{6, 23, 30 * 6 + 301};
    std::vector<DesignProgress> designs(30);
    std::int64_t spent = 0;
    for (int round = 0;; ++round) {
        const auto blocks = next_blocks(designs, plan);
        CHECK(blocks == next_blocks(designs, plan));
        if (blocks.empty()) {
            break;
        }
        REQUIRE((round > 0 || blocks.size() == 30));
        REQUIRE(blocks.size() <= 30);
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            const ReplicationBlock& block = blocks[i];
            CHECK((i == 0 || blocks[i - 1].design < block.design));
            CHECK(block.first_replication == designs[block.design].asked);
            CHECK((block.replications == (round == 0 ? 6 : 5) || block.first_replication + block.replications == 23));
            study.replicate(designs[block.design], block);
            spent += block.replications;
        }
    }
    CHECK(spent <= plan.budget);
    CHECK(spent > plan.budget - 5);  // with this noise nothing like all designs is decided
    std::int64_t fewest = 1000;
    std::int64_t most = 0;
    for (const DesignProgress& design : designs) {
        fewest = std::min(fewest, design.asked);
        most = std::max(most, design.asked);
    }
    CHECK(fewest >= 6);
    CHECK(most == 23);
}

TEST_CASE("a sweep ends early when everything is decided") {
    SyntheticStudy study{1, {{0.0, 0.0, 0.0}, {1.0, 1.0, 0.0}, {-1.0, 2.0, 0.0}, {5.0, 5.0, 0.0}}, 2, 1e-3, 0.5};
    std::int64_t asked = 0;
    for (const DesignProgress& design : study.run({6, 100, 400})) {
        asked += design.asked;
    }
    CHECK(asked == 4 * 6);
}

TEST_CASE("designs that failed get no more, and equal plans have one round") {
    std::vector<DesignProgress> designs(3);
    SyntheticStudy study{1, {{0.0, 0.0, 0.0}, {0.001, -0.001, 0.0}, {0.002, 0.002, 0.0}}, 2, 1.0, 0.0};
    for (const ReplicationBlock& block : next_blocks(designs, {4, 40, 90})) {
        study.replicate(designs[block.design], block);
    }
    designs[1].failed = true;
    const auto second = next_blocks(designs, {4, 40, 90});
    REQUIRE_FALSE(second.empty());
    for (const ReplicationBlock& block : second) {
        CHECK(block.design != 1);
    }
    CHECK(next_blocks(designs, equal_plan(4)).empty());
    CHECK_THROWS_AS(next_blocks(designs, {4, 40, 11}), std::invalid_argument);
    CHECK_THROWS_AS(next_blocks(designs, {4, 3, 100}), std::invalid_argument);
}

TEST_CASE("the sample sizes that a plan can end with are counted") {
    CHECK(replication_looks(equal_plan(20)) == 1);
    CHECK(replication_looks({5, 40, 100}) == 8);  // 5, 10, ..., 40
    CHECK(replication_looks({6, 23, 100}) == 5);  // 6, 11, 16, 21, 23
}
