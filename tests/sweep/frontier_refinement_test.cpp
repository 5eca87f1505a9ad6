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

/// Every combination is a design.
MadeDesign make_any(const std::string& family, const AxisValues& values) {
    return {design(family, values), ""};
}

std::vector<std::size_t> all_of(const std::vector<Design>& designs) {
    std::vector<std::size_t> front(designs.size());
    std::iota(front.begin(), front.end(), std::size_t{0});
    return front;
}

Refinement refine(const std::vector<Design>& designs, const std::vector<ObjectivePoint>& points, std::size_t most = 5,
                  const DesignMaker& make = make_any, std::size_t objectives = 2) {
    return refine_frontier(designs, points, all_of(designs), objectives, {.most = most}, make);
}

using Values = AxisValues;

/// Eight GPUs.
MadeDesign make_of_eight(const std::string& family, const AxisValues& values) {
    int gpus = 0;
    for (const auto& [path, value] : values) {
        gpus += path == "W" || path == "T" ? std::stoi(value) : 0;
    }
    return gpus == 8 ? make_any(family, values) : MadeDesign{std::nullopt, "W + T is not 8"};
}

}  // namespace

TEST_CASE("the widest gap is bisected first, by factors where the axis is stepped by factors") {
    const std::vector<Design> designs = {design("a", {{"store.capacity", "64"}, {"trainers.count", "2"}}),
                                         design("a", {{"store.capacity", "1024"}, {"trainers.count", "2"}}),
                                         design("a", {{"store.capacity", "1024"}, {"trainers.count", "6"}})};
    const Refinement both = refine(designs, {{0.0, 10.0, 0.0}, {7.0, 1.0, 0.0}, {10.0, 0.0, 0.0}});
    REQUIRE(both.proposed.size() == 2);
    CHECK(both.refused.empty());
    CHECK(both.proposed[0].design.values == Values{{"store.capacity", "256"}, {"trainers.count", "2"}});
    CHECK(both.proposed[0].gap.width == doctest::Approx(std::sqrt(0.49 + 0.81)));
    CHECK(both.proposed[1].design.values == Values{{"store.capacity", "1024"}, {"trainers.count", "4"}});
    CHECK(refine(designs, {{0.0, 10.0, 0.0}, {2.0, 9.0, 0.0}, {10.0, 0.0, 0.0}}, 1).proposed[0].design.values ==
          Values{{"store.capacity", "1024"}, {"trainers.count", "4"}});
}

TEST_CASE("neighbours that differ in several numbers are bisected in all of them") {
    const Refinement zip = refine({design("a", {{"workers.count", "6"}, {"rate", "0.5"}, {"k", "1"}}),
                                   design("a", {{"workers.count", "4"}, {"rate", "1"}, {"k", "1"}})},
                                  {{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}});
    REQUIRE(zip.proposed.size() == 1);
    CHECK(zip.proposed[0].design.values == Values{{"workers.count", "5"}, {"rate", "0.75"}, {"k", "1"}});
}

TEST_CASE("columns of a zip stay on the way between its rows") {
    const auto zipped = [](std::string workers, std::string trainers, std::string room) {
        Design made = design("a", {{"W", std::move(workers)}, {"T", std::move(trainers)}, {"N", std::move(room)}});
        made.axes = {0, 0, 1};
        return made;
    };
    const std::vector<ObjectivePoint> points = {{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}};
    const auto middle = [&](const Design& a, const Design& b) {
        const Refinement result = refine({a, b}, points);
        REQUIRE(result.proposed.size() == 1);
        return result.proposed[0].design.values;
    };
    // No constraint is needed for sixteen GPUs to stay sixteen.
    CHECK(middle(zipped("14", "2", "64"), zipped("12", "4", "64")) == Values{{"W", "13"}, {"T", "3"}, {"N", "64"}});
    CHECK(middle(zipped("14", "2", "64"), zipped("11", "5", "64")) == Values{{"W", "13"}, {"T", "3"}, {"N", "64"}});
    CHECK(middle(zipped("12", "4", "64"), zipped("9", "7", "128")) == Values{{"W", "11"}, {"T", "5"}, {"N", "96"}});
    // Without a row between, another axis may have a middle at one of the two.
    CHECK(middle(zipped("14", "2", "64"), zipped("13", "3", "128")) == Values{{"W", "14"}, {"T", "2"}, {"N", "96"}});
    const Refinement none = refine({zipped("14", "2", "64"), zipped("13", "3", "64")}, points);
    CHECK(none.proposed.empty());
    REQUIRE(none.refused.size() == 1);
    CHECK(none.refused[0].reason == "axes that are zipped have no row between theirs whose numbers are whole");
    // Where they are large, rounding does not leave the way.
    CHECK(middle(zipped("1001", "2000", "64"), zipped("2000", "4001", "64"))[0].second == "1501");
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
    CHECK(reason(design("a", {{"seed", "1"}}), design("a", {{"seed", "9"}})) ==
          "they differ in seed, which measures nothing");
    CHECK(reason(design("a", {{"kind", "\"fifo\""}}), design("a", {{"kind", "\"lifo\""}})) ==
          "they differ in kind, which is no number");
    CHECK(reason(design("a", {{"t", "1"}}), design("b", {{"t", "5"}})) == "they belong to different families");

    const Refinement there =
        refine_frontier(std::vector{design("a", {{"t", "4"}}), design("a", {{"t", "8"}}), design("a", {{"t", "6"}})},
                        std::vector<ObjectivePoint>{{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}, {2.0, 2.0, 0.0}},
                        std::vector<std::size_t>{0, 1}, 2, {.most = 5}, make_any);
    REQUIRE(there.refused.size() == 1);
    CHECK(there.refused[0].reason == "the design in the middle is there already");
}

TEST_CASE("designs at one point are no gap, and the pair most alike spans the next") {
    const Refinement result = refine({design("b", {{"t", "1"}}), design("a", {{"t", "2"}, {"n", "4"}}),
                                      design("a", {{"t", "2"}, {"n", "6"}}), design("a", {{"t", "4"}, {"n", "6"}})},
                                     {{0.0, 1.0, 0.0}, {0.0, 1.0, 0.0}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}});
    REQUIRE(result.proposed.size() == 1);
    CHECK(result.proposed[0].design.values == Values{{"t", "3"}, {"n", "6"}});
    CHECK(result.refused.empty());
}

TEST_CASE("axes that have to be rounded find the roundings that make a design together") {
    const std::vector<ObjectivePoint> points = {{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}};
    // 4.5 and 3.5 round up to (5, 4), which is none.
    const Refinement split = refine({design("a", {{"W", "7"}, {"T", "1"}}), design("a", {{"W", "2"}, {"T", "6"}})},
                                    points, 5, make_of_eight);
    REQUIRE(split.proposed.size() == 1);
    CHECK(split.proposed[0].design.values == Values{{"W", "5"}, {"T", "3"}});
    // Neighbouring splits with another size between them: one of the two, at the new size.
    const Refinement size = refine(
        {design("a", {{"W", "6"}, {"T", "2"}, {"N", "100"}}), design("a", {{"W", "5"}, {"T", "3"}, {"N", "200"}})},
        points, 5, make_of_eight);
    REQUIRE(size.proposed.size() == 1);
    CHECK(size.proposed[0].design.values == Values{{"W", "6"}, {"T", "2"}, {"N", "150"}});
    // By factors, (2.6, 2.6) is no split at all; by differences it is (4, 4).
    const Refinement far = refine({design("a", {{"W", "7"}, {"T", "1"}}), design("a", {{"W", "1"}, {"T", "7"}})},
                                  points, 5, make_of_eight);
    REQUIRE(far.proposed.size() == 1);
    CHECK(far.proposed[0].design.values == Values{{"W", "4"}, {"T", "4"}});
    // Between neighbours there is nothing.
    const Refinement none = refine({design("a", {{"W", "6"}, {"T", "2"}}), design("a", {{"W", "5"}, {"T", "3"}})},
                                   points, 5, make_of_eight);
    CHECK(none.proposed.empty());
    REQUIRE(none.refused.size() == 1);
    CHECK(none.refused[0].reason == "W + T is not 8");
}

TEST_CASE("real numbers in the middle have few digits") {
    const Refinement result =
        refine({design("a", {{"rate", "0.1"}}), design("a", {{"rate", "0.2"}})}, {{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}});
    REQUIRE(result.proposed.size() == 1);
    CHECK(result.proposed[0].design.values == Values{{"rate", "0.15"}});
}

TEST_CASE("gaps that are much narrower than the widest can wait for its halves") {
    const std::vector<Design> designs = {design("a", {{"t", "0"}}), design("a", {{"t", "100"}}),
                                         design("a", {{"t", "140"}}), design("a", {{"t", "160"}})};
    const std::vector<ObjectivePoint> points = {{0.0, 1.0, 0.0}, {0.6, 0.4, 0.0}, {0.8, 0.2, 0.0}, {1.0, 0.0, 0.0}};
    CHECK(refine(designs, points).proposed.size() == 3);
    const Refinement wide =
        refine_frontier(designs, points, all_of(designs), 2, {.most = 5, .least_share = 0.5}, make_any);
    REQUIRE(wide.proposed.size() == 1);
    CHECK(wide.proposed[0].design.values == Values{{"t", "50"}});
}

TEST_CASE("with three objectives the gaps are those of the minimum spanning tree") {
    // A long arm of two and a cluster of three, the first objective in other units.
    const std::vector<Design> designs = {design("a", {{"t", "0"}}), design("a", {{"t", "10"}}),
                                         design("a", {{"t", "20"}}), design("a", {{"t", "40"}})};
    const std::vector<ObjectivePoint> points = {
        {0.0, 1.0, 1.0}, {100.0, 0.9, 0.95}, {200.0, 0.85, 0.9}, {1000.0, 0.0, 0.0}};
    const Refinement result = refine(designs, points, 5, make_any, 3);
    CHECK(result.note.empty());
    REQUIRE(result.proposed.size() == 3);  // edges of a tree
    CHECK(result.proposed[0].design.values == Values{{"t", "30"}});
    CHECK(result.proposed[0].gap.width == doctest::Approx(std::sqrt(0.8 * 0.8 + 0.85 * 0.85 + 0.9 * 0.9)));
    for (const ProposedDesign& proposal : result.proposed) {
        // Its neighbour in the tree, never the one beyond.
        CHECK((proposal.gap.to == proposal.gap.from + 1 || proposal.gap.from == proposal.gap.to + 1));
    }
}

TEST_CASE("lonely designs have no gaps") {
    const std::vector<Design> designs = {design("a", {{"t", "1"}}), design("a", {{"t", "9"}})};
    const std::vector<ObjectivePoint> points = {{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}};
    CHECK_FALSE(refine_frontier(designs, points, std::vector<std::size_t>{0}, 2, {.most = 5}, make_any).note.empty());
}
