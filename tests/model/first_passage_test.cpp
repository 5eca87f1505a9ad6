#include "model/evaluation/first_passage.h"

#include <doctest/doctest.h>

using namespace millrace;

TEST_CASE("a curve that rises evenly reaches a level in proportion") {
    const std::vector<double> at{0.0, 10.0, 30.0};
    const std::vector<double> values{0.1, 0.2, 0.4};
    CHECK(*first_passage(at, values, 0.15) == doctest::Approx(5.0));
    CHECK(*first_passage(at, values, 0.3) == doctest::Approx(20.0));
    CHECK(*first_passage(at, values, 0.4) == doctest::Approx(30.0));
    CHECK(*first_passage(at, values, 0.1) == 0.0);
    CHECK_FALSE(first_passage(at, values, 0.41).has_value());
}

TEST_CASE("what counts is the first time, whatever comes after it") {
    const std::vector<double> at{0.0, 1.0, 2.0, 3.0};
    CHECK(*first_passage(at, std::vector{0.0, 1.0, 0.0, 1.0}, 0.5) == doctest::Approx(0.5));
}

TEST_CASE("smoothing keeps a straight line inside, takes two points at the ends, and levels a single spike") {
    CHECK(smoothed(std::vector{1.0, 2.0, 3.0, 4.0}) == std::vector{1.5, 2.0, 3.0, 3.5});
    CHECK(smoothed(std::vector{0.0, 3.0, 0.0}) == std::vector{1.5, 1.0, 1.5});
    CHECK(smoothed(std::vector{7.0}) == std::vector{7.0});
    CHECK(smoothed(std::vector<double>{}).empty());
}

TEST_CASE("between its points a curve is straight") {
    const std::vector<double> at{0.0, 10.0, 30.0};
    const std::vector<double> values{1.0, 2.0, 0.0};
    CHECK(value_at(at, values, 0.0) == 1.0);
    CHECK(value_at(at, values, 5.0) == doctest::Approx(1.5));
    CHECK(value_at(at, values, 25.0) == doctest::Approx(0.5));
    CHECK(value_at(at, values, 30.0) == 0.0);
}

TEST_CASE("a drop is measured from the highest level before it") {
    CHECK(largest_drop(std::vector{1.0, 2.0, 3.0}) == 0.0);
    CHECK(largest_drop(std::vector{1.0, 3.0, 2.0, 4.0, 2.5}) == doctest::Approx(1.5));
    CHECK(largest_drop(std::vector{0.0, -1.0}) == doctest::Approx(1.0));
}
