#include "sim/pareto/pareto_front.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/engine/random.h"

using namespace millrace;

namespace {

/// Random points of which many coincide in a coordinate or altogether when `grid` is small; 0 is no grid.
std::vector<ObjectivePoint> random_points(Draw& draw, std::size_t count, std::size_t objectives, std::uint64_t grid) {
    std::vector<ObjectivePoint> points(count);
    for (ObjectivePoint& point : points) {
        for (std::size_t j = 0; j < objectives; ++j) {
            point[j] = grid == 0 ? draw.uniform() : static_cast<double>(draw.below(grid)) - 1.0;
        }
    }
    return points;
}

std::vector<std::size_t> front_by_definition(const std::vector<ObjectivePoint>& points) {
    std::vector<std::size_t> front;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (std::none_of(points.begin(), points.end(),
                         [&](const auto& other) { return dominates(other, points[i]); })) {
            front.push_back(i);
        }
    }
    return front;
}

/// Of points on the grid 0, 1, ...: the number of unit cells below the reference that some point dominates.
double count_cells(const std::vector<ObjectivePoint>& points, int reference, std::size_t objectives) {
    int cells = 0;
    for (int x = -1; x < reference; ++x) {
        for (int y = -1; y < reference; ++y) {
            for (int z = objectives == 3 ? -1 : 0; z < (objectives == 3 ? reference : 1); ++z) {
                cells += std::any_of(points.begin(), points.end(),
                                     [&](const ObjectivePoint& p) { return p[0] <= x && p[1] <= y && p[2] <= z; });
            }
        }
    }
    return cells;
}

}  // namespace

TEST_CASE("the front is what no point dominates") {
    Draw draw(RandomStream(11, 0, Purpose::test_schedule), 0);
    std::size_t copies = 0;
    for (int trial = 0; trial < 6000; ++trial) {
        const std::size_t objectives = 2 + static_cast<std::size_t>(trial) % 2;
        const std::uint64_t grid = std::array<std::uint64_t, 4>{0, 2, 4, 9}[draw.below(4)];
        const auto points = random_points(draw, draw.below(40), objectives, grid);
        const auto front = pareto_front(points);
        REQUIRE(front == front_by_definition(points));
        for (std::size_t i = 1; i < front.size(); ++i) {
            copies += points[front[i]] == points[front[i - 1]];
        }
    }
    CHECK(copies > 1000);  // otherwise duplicates were not tried
}

TEST_CASE("equal points do not dominate each other") {
    const ObjectivePoint a{1.0, 2.0, 0.0};
    CHECK_FALSE(dominates(a, a));
    CHECK(pareto_front(std::vector{a, a, ObjectivePoint{1.0, 3.0, 0.0}, a}) == std::vector<std::size_t>{0, 1, 3});
    CHECK(pareto_front(std::vector{ObjectivePoint{0.0, 1.0, 0.0}, ObjectivePoint{-0.0, 1.0, 0.0}}).size() == 2);
    CHECK(pareto_front({}).empty());
    CHECK_THROWS_AS(pareto_front(std::vector{ObjectivePoint{std::nan(""), 0.0, 0.0}}), std::invalid_argument);
    CHECK_THROWS_AS(hypervolume(std::vector{a}, {std::numeric_limits<double>::infinity(), 3.0, 0.0}, 2),
                    std::invalid_argument);
}

TEST_CASE("hypervolumes of whole numbers are counts of cells") {
    Draw draw(RandomStream(12, 0, Purpose::test_schedule), 0);
    for (int trial = 0; trial < 2000; ++trial) {
        const std::size_t objectives = 2 + static_cast<std::size_t>(trial) % 2;
        const auto points = random_points(draw, draw.below(25), objectives, 8);  // from -1 to 6
        const auto at = static_cast<double>(4 + draw.below(3));                  // some points lie beyond
        REQUIRE(hypervolume(points, {at, at, at}, objectives) == count_cells(points, static_cast<int>(at), objectives));
    }
}

TEST_CASE("hypervolumes of real numbers agree with closed forms and with sampling") {
    // A staircase of n steps under the line x + y = 1: n (n - 1) / 2 missing cells and half of the last.
    for (const int n : {1, 2, 10, 1000}) {
        std::vector<ObjectivePoint> stairs;
        for (int i = 0; i <= n; ++i) {
            stairs.push_back({static_cast<double>(i) / n, 1.0 - static_cast<double>(i) / n, 0.0});
        }
        CHECK(hypervolume(stairs, {1.0, 1.0, 0.0}, 2) == doctest::Approx(0.5 - 0.5 / n));
    }
    // Boxes [p, 1]^3 that overlap: inclusion and exclusion.
    const std::vector<ObjectivePoint> two = {{0.5, 0.25, 0.0}, {0.25, 0.5, 0.5}};
    CHECK(hypervolume(two, {1.0, 1.0, 1.0}, 3) == doctest::Approx(0.375 + 0.1875 - 0.125));

    Draw draw(RandomStream(13, 0, Purpose::test_schedule), 0);
    for (const std::size_t objectives : {std::size_t{2}, std::size_t{3}}) {
        const auto points = random_points(draw, 12, objectives, 0);
        int below = 0;
        constexpr int samples = 200'000;
        for (int s = 0; s < samples; ++s) {
            const ObjectivePoint place{draw.uniform(), draw.uniform(), objectives == 3 ? draw.uniform() : 0.0};
            below += std::any_of(points.begin(), points.end(), [&](const ObjectivePoint& p) {
                return p[0] <= place[0] && p[1] <= place[1] && p[2] <= place[2];
            });
        }
        const double share = static_cast<double>(below) / samples;
        const double error = std::sqrt(share * (1.0 - share) / samples);
        CHECK(std::abs(hypervolume(points, {1.0, 1.0, 1.0}, objectives) - share) < 4.0 * error);
    }
}

TEST_CASE("a point that is dominated or beyond the reference adds nothing") {
    Draw draw(RandomStream(14, 0, Purpose::test_schedule), 0);
    for (int trial = 0; trial < 200; ++trial) {
        const auto points = random_points(draw, 30, 3, 6);
        std::vector<ObjectivePoint> only_front;
        for (const std::size_t i : pareto_front(points)) {
            only_front.push_back(points[i]);
        }
        const ObjectivePoint reference{4.0, 4.0, 4.0};
        CHECK(hypervolume(points, reference, 3) == hypervolume(only_front, reference, 3));
    }
}
