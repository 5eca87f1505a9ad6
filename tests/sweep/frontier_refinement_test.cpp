#include "sim/sweep/frontier_refinement.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

using namespace millrace;

namespace {

Design design(const std::string& family, std::vector<std::pair<std::string, std::string>> values) {
    Design result;
    result.family = family;
    result.values = std::move(values);
    return result;
}

Refinement refine(const std::vector<Design>& designs, const std::vector<ObjectivePoint>& points, std::size_t most = 5) {
    std::vector<std::size_t> front(designs.size());
    std::iota(front.begin(), front.end(), std::size_t{0});
    return refine_frontier(designs, points, front, 2, most);
}

using Values = std::vector<std::pair<std::string, std::string>>;

}  // namespace

TEST_CASE("the widest gap is bisected first, by factors where the axis is stepped by factors") {
    const std::vector<Design> designs = {design("a", {{"store.capacity", "64"}, {"trainers.count", "2"}}),
                                         design("a", {{"store.capacity", "1024"}, {"trainers.count", "2"}}),
                                         design("a", {{"store.capacity", "1024"}, {"trainers.count", "6"}})};
    const Refinement both = refine(designs, {{0.0, 10.0, 0.0}, {7.0, 1.0, 0.0}, {10.0, 0.0, 0.0}});
    REQUIRE(both.proposed.size() == 2);
    CHECK(both.refused.empty());
    CHECK(both.proposed[0].values == Values{{"store.capacity", "256"}, {"trainers.count", "2"}});
    CHECK(both.proposed[0].gap.width == doctest::Approx(std::sqrt(0.49 + 0.81)));
    CHECK(both.proposed[1].values == Values{{"store.capacity", "1024"}, {"trainers.count", "4"}});
    CHECK(refine(designs, {{0.0, 10.0, 0.0}, {2.0, 9.0, 0.0}, {10.0, 0.0, 0.0}}, 1).proposed[0].values ==
          Values{{"store.capacity", "1024"}, {"trainers.count", "4"}});
}

TEST_CASE("neighbours that differ in several numbers are bisected in all of them") {
    const Refinement zip = refine({design("a", {{"workers.count", "6"}, {"rate", "0.5"}, {"k", "1"}}),
                                   design("a", {{"workers.count", "4"}, {"rate", "1"}, {"k", "1"}})},
                                  {{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}});
    REQUIRE(zip.proposed.size() == 1);
    CHECK(zip.proposed[0].values == Values{{"workers.count", "5"}, {"rate", "0.75"}, {"k", "1"}});
}

TEST_CASE("gaps that cannot be bisected are refused with the reason") {
    const std::vector<ObjectivePoint> points = {{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}};
    const auto reason = [&](const Design& a, const Design& b) {
        const Refinement result = refine({a, b}, points);
        CHECK(result.proposed.empty());
        REQUIRE(result.refused.size() == 1);
        return result.refused[0].reason;
    };
    CHECK(reason(design("a", {{"t", "8"}}), design("a", {{"t", "9"}})) ==
          "8 and 9 of t have no whole number between them");
    CHECK(reason(design("a", {{"kind", "\"fifo\""}}), design("a", {{"kind", "\"lifo\""}})) ==
          "they differ in kind, which is no number");
    CHECK(reason(design("a", {{"t", "1"}}), design("b", {{"t", "5"}})) == "they belong to different families");

    const Refinement there =
        refine_frontier(std::vector{design("a", {{"t", "4"}}), design("a", {{"t", "8"}}), design("a", {{"t", "6"}})},
                        std::vector<ObjectivePoint>{{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}, {2.0, 2.0, 0.0}},
                        std::vector<std::size_t>{0, 1}, 2, 5);
    REQUIRE(there.refused.size() == 1);
    CHECK(there.refused[0].reason == "the design in the middle is there already");
}

TEST_CASE("designs at one point are no gap, and the pair most alike spans the next") {
    const Refinement result = refine({design("b", {{"t", "1"}}), design("a", {{"t", "2"}, {"n", "4"}}),
                                      design("a", {{"t", "2"}, {"n", "6"}}), design("a", {{"t", "4"}, {"n", "6"}})},
                                     {{0.0, 1.0, 0.0}, {0.0, 1.0, 0.0}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}});
    REQUIRE(result.proposed.size() == 1);
    CHECK(result.proposed[0].values == Values{{"t", "3"}, {"n", "6"}});
    CHECK(result.refused.empty());
}

TEST_CASE("three objectives and lonely designs have no gaps") {
    const std::vector<Design> designs = {design("a", {{"t", "1"}}), design("a", {{"t", "9"}})};
    const std::vector<ObjectivePoint> points = {{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}};
    CHECK_FALSE(refine_frontier(designs, points, std::vector<std::size_t>{0, 1}, 3, 5).note.empty());
    CHECK_FALSE(refine_frontier(designs, points, std::vector<std::size_t>{0}, 2, 5).note.empty());
}
