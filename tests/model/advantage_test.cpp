#include "model/advantage.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace millrace;

namespace {

std::vector<double> advantages(Algorithm algorithm, const std::vector<double>& rewards) {
    std::vector<double> result(rewards.size());
    write_advantages({.algorithm = algorithm}, rewards, result);
    return result;
}

}  // namespace

TEST_CASE("GRPO: distance from the group's mean in standard deviations") {
    const auto result = advantages(Algorithm::grpo, {1.0, 0.0, 0.0, 0.0});
    const double deviation = std::sqrt(3.0) / 4.0;
    CHECK(result[0] == doctest::Approx(0.75 / (deviation + 1e-4)));
    CHECK(result[1] == doctest::Approx(-0.25 / (deviation + 1e-4)));
    CHECK(result[0] + result[1] + result[2] + result[3] == doctest::Approx(0.0));
}

TEST_CASE("GRPO: nothing is learnt from a group of equal rewards") {
    for (const double reward : {0.0, 1.0, 0.1}) {
        for (const double advantage : advantages(Algorithm::grpo, std::vector<double>(7, reward))) {
            CHECK(advantage == 0.0);
        }
    }
}

TEST_CASE("AsymRE: the baseline is below the mean, so equal rewards still have weight") {
    CHECK(advantages(Algorithm::asymre, {1.0, 0.0})[0] == doctest::Approx(0.6));
    CHECK(advantages(Algorithm::asymre, {1.0, 0.0})[1] == doctest::Approx(-0.4));
    CHECK(advantages(Algorithm::asymre, {0.0, 0.0})[0] == doctest::Approx(0.1));
}

TEST_CASE("REINFORCE: distance from the mean") {
    CHECK(advantages(Algorithm::reinforce, {1.0, 0.0, 0.0, 0.0})[0] == doctest::Approx(0.75));
    CHECK(advantages(Algorithm::reinforce, {1.0, 1.0})[1] == 0.0);
}
