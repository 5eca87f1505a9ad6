#include <doctest/doctest.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "sim/engine/random.h"
#include "sim/metrics/estimate.h"
#include "sim/metrics/histogram.h"
#include "sim/metrics/mser5.h"
#include "sim/metrics/role_clock.h"

using namespace millrace;

TEST_CASE("Student's t quantiles agree with Boost.Math") {
    for (std::int64_t degrees = 1; degrees <= 2000; ++degrees) {
        const double truth = boost::math::quantile(boost::math::students_t(static_cast<double>(degrees)), 0.975);
        INFO("degrees " << degrees);
        CHECK(student_t_975(degrees) == doctest::Approx(truth).epsilon(degrees <= 30 ? 1e-12 : 1e-6));
    }
    CHECK_THROWS_AS(student_t_975(0), std::invalid_argument);
}

TEST_CASE("an estimate is the mean and its t interval") {
    // 1, 2, 3, 4: mean 2.5, standard error sqrt(5/3 / 4) = 0.6455, t(3) = 3.1824.
    const std::vector<double> values = {1.0, 2.0, 3.0, 4.0};
    const Estimate found = estimate(values);
    CHECK(found.mean == 2.5);
    CHECK(*found.half_width == doctest::Approx(3.182446305 * std::sqrt(5.0 / 12.0)));
    CHECK(found.replications == 4);

    const std::vector<double> single = {7.0};
    CHECK_FALSE(estimate(single).half_width.has_value());
    CHECK_FALSE(estimate(single).note.empty());
    CHECK_FALSE(closed_form(1.0).half_width.has_value());
}

TEST_CASE("MSER-5 cuts a transient off and leaves a stationary series alone") {
    const RandomStream stream(4, 0, Purpose::test_services);
    std::vector<double> settled;
    std::vector<double> rising;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        Draw draw(stream, i);
        const double noise = draw.uniform() - 0.5;
        settled.push_back(10.0 + noise);
        rising.push_back(10.0 - 8.0 * std::exp(-static_cast<double>(i) / 40.0) + noise);
    }
    CHECK(mser5(settled) <= 50);
    const std::int64_t cut = mser5(rising);
    CHECK(cut >= 80);   // at 80 the transient is still 1.1, twice the noise
    CHECK(cut <= 260);  // at 260 it is 0.012
    CHECK(cut % 5 == 0);

    std::vector<double> trend;
    for (int i = 0; i < 1000; ++i) {
        trend.push_back(i);
    }
    CHECK(mser5(trend) == 500);  // never settles: the limit
    CHECK(mser5(std::vector<double>{1.0, 2.0, 3.0}) == 0);
}

TEST_CASE("histogram quantiles and mean are those of the values") {
    Histogram h;
    for (const int value : {0, 1, 1, 2, 2, 2, 3, 3, 3, 9}) {
        h.add(value);
    }
    CHECK(h.total() == 10);
    CHECK(h.mean() == doctest::Approx(2.6));
    CHECK(h.quantile(0.5) == 2);
    CHECK(h.quantile(0.9) == 3);
    CHECK(h.quantile(0.99) == 9);
    CHECK(h.quantile(1.0) == 9);
    Histogram other;
    other.add(20, 3);
    h.merge(other);
    CHECK(h.total() == 13);
    CHECK(h.counts().size() == 21);
}

TEST_CASE("the times of a role's states add up to members times elapsed") {
    WorkerClock clock(5, WorkerState::starved);
    clock.move({0}, WorkerState::starved, WorkerState::busy);
    clock.move({7}, WorkerState::starved, WorkerState::busy);
    clock.move_all({10}, WorkerState::starved, WorkerState::blocked);
    clock.move({25}, WorkerState::busy, WorkerState::paused);
    const auto spent = clock.spent_ns({40});
    CHECK(spent[0] == 7 + 18 * 2 + 15);
    CHECK(spent[1] == 15);
    CHECK(spent[2] == 30 * 3);
    CHECK(spent[0] + spent[1] + spent[2] + spent[3] == 5 * 40);
}
