#include <doctest/doctest.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "sim/engine/random.h"
#include "sim/metrics/estimate.h"
#include "sim/metrics/histogram.h"
#include "sim/metrics/mser5.h"
#include "sim/metrics/role_clock.h"
#include "sim/metrics/station_flow.h"

using namespace millrace;

namespace {

std::int64_t in_state(const WorkerClock& clock, std::size_t state, Time now) {
    return static_cast<std::int64_t>(clock.spent_ns(now)[state]);
}

}  // namespace

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
    // busy: one member for 7, two for 18, one for 15; paused: one for 15; blocked: three for 30; starved: the five less
    // those, four for 7 and three for 3.
    CHECK(in_state(clock, 0, {40}) == 7 + 18 * 2 + 15);
    CHECK(in_state(clock, 1, {40}) == 15);
    CHECK(in_state(clock, 2, {40}) == 30 * 3);
    CHECK(in_state(clock, 3, {40}) == 7 * 4 + 3 * 3);
    // Asking changes nothing, and a moment may see several moves.
    CHECK(in_state(clock, 0, {25}) == 7 + 18 * 2);
    clock.move_all({40}, WorkerState::blocked, WorkerState::starved);
    clock.move({40}, WorkerState::starved, WorkerState::busy);
    CHECK(in_state(clock, 0, {50}) == 58 + 10 * 2);
    CHECK(in_state(clock, 2, {50}) == 90);
    CHECK(in_state(clock, 3, {50}) == 37 + 10 * 2);
}

TEST_CASE("a station's flow keeps the integral of the number present and the sum of stays") {
    StationFlow flow;
    flow.enter({1'000'000'000});
    flow.enter({3'000'000'000});
    flow.leave({6'000'000'000}, {3'000'000'000});
    flow.enter({7'000'000'000});
    // One present in [1, 3], two in [3, 6], one in [6, 7], two in [7, 10].
    CHECK(flow.presence_s({10'000'000'000}) == doctest::Approx(2.0 + 6.0 + 1.0 + 6.0));
    CHECK(flow.sojourn_s() == doctest::Approx(3.0));
    CHECK(flow.present() == 2);
}
