#include "sim/theory/queue_staleness.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <stdexcept>

using namespace millrace;

TEST_CASE("six runs of Qwen3-8B: the closed form follows the rows and overshoots the measurements by 0.18") {
    // Applied Compute, "Predicting and Controlling Staleness in Fully Asynchronous RL Training" (July 2026).
    struct Run {
        double concurrency, batch, q, utilization, m_tail, formula, measured;
    };
    constexpr std::array<Run, 6> runs = {{{120, 240, 2, 0.63, 1.42, 1.340, 1.26},
                                          {240, 120, 2, 0.92, 1.43, 3.780, 3.59},
                                          {128, 128, 2, 1.07, 1.44, 3.248, 3.09},
                                          {240, 120, 1, 0.86, 1.42, 3.700, 3.40},
                                          {120, 120, 1, 0.67, 1.42, 2.090, 1.92},
                                          {128, 128, 1, 1.14, 1.45, 2.211, 2.01}}};
    double total_error = 0.0;
    for (const Run& run : runs) {
        const double staleness = mean_staleness({.concurrency = run.concurrency,
                                                 .batch = run.batch,
                                                 .capacity_batches = run.q,
                                                 .utilization = run.utilization,
                                                 .group_tail = run.m_tail});
        CHECK(staleness == doctest::Approx(run.formula).epsilon(0.0005));
        CHECK(std::abs(staleness - run.measured) < 0.31);
        total_error += std::abs(staleness - run.measured);
    }
    CHECK(total_error / 6.0 == doctest::Approx(0.18).epsilon(0.03));
}

TEST_CASE("closed form of the tabulated simulations, from the lognormal's own tail") {
    struct Row {
        double concurrency, batch;
        int size;
        double log_sd, m_tail, q, utilization, closed;
    };
    constexpr std::array<Row, 17> rows = {{{128, 128, 8, 0.2, 1.31, 1, 0.5, 1.81},
                                           {128, 128, 8, 0.2, 1.31, 1, 0.8, 2.11},
                                           {128, 128, 8, 0.2, 1.31, 1, 0.95, 2.26},
                                           {128, 128, 8, 0.2, 1.31, 1, 1.1, 2.15},
                                           {128, 128, 8, 0.2, 1.31, 1, 1.5, 1.71},
                                           {128, 128, 8, 0.2, 1.31, 2, 1.1, 3.06},
                                           {128, 128, 8, 0.2, 1.31, 2, 1.5, 2.37},
                                           {128, 128, 8, 0.4, 1.68, 1, 0.5, 2.18},
                                           {128, 128, 8, 0.4, 1.68, 1, 0.8, 2.48},
                                           {128, 128, 8, 0.4, 1.68, 1, 0.95, 2.63},
                                           {128, 128, 8, 0.4, 1.68, 1, 1.1, 2.48},
                                           {128, 128, 8, 0.4, 1.68, 1, 1.5, 1.95},
                                           {256, 128, 8, 0.4, 1.68, 1, 0.8, 4.16},
                                           {512, 128, 8, 0.4, 1.68, 1, 0.8, 7.53},
                                           {384, 128, 16, 0.6, 2.56, 1, 0.7, 8.37},
                                           {256, 128, 8, 0.9, 2.83, 1, 0.6, 6.25},
                                           {128, 128, 8, 0.4, 1.68, 4, 1.3, 4.49}}};
    for (const Row& row : rows) {
        const double m_tail = lognormal_group_tail(row.log_sd, row.size).mean;
        CHECK(m_tail == doctest::Approx(row.m_tail).epsilon(0.01));
        CHECK(mean_staleness({.concurrency = row.concurrency,
                              .batch = row.batch,
                              .capacity_batches = row.q,
                              .utilization = row.utilization,
                              .group_tail = m_tail}) == doctest::Approx(row.closed).epsilon(0.005));
    }
}

TEST_CASE("variance of staleness below balance") {
    struct Row {
        double concurrency;
        int size;
        double log_sd, variance;
    };
    // Simulated variances of the tabulated runs: C slots, lognormal lengths, a group's version stamped when its first
    // member starts, B = 128. Where the first term is small, the half-period spreads of the law are not independent.
    constexpr std::array<Row, 5> rows = {
        {{128, 8, 0.4, 0.36}, {256, 8, 0.4, 0.93}, {512, 8, 0.4, 3.17}, {384, 16, 0.6, 7.66}, {256, 8, 0.9, 14.65}}};
    for (const Row& row : rows) {
        const GroupTail tail = lognormal_group_tail(row.log_sd, row.size);
        const TransferQueueLoad load{
            .concurrency = row.concurrency, .batch = 128, .utilization = 0.7, .group_tail = tail.mean};
        CHECK(staleness_variance(load, tail.variance) == doctest::Approx(row.variance).epsilon(0.05));
    }
    CHECK(staleness_variance({.utilization = 0.5}, 0.0) == doctest::Approx(1.0 / 6.0));
    CHECK_THROWS_AS(staleness_variance({.utilization = 1.0}, 0.0), std::domain_error);
}

TEST_CASE("at balance the staleness lies midway between its two limits") {
    for (const double q : {1.0, 2.0, 4.0}) {
        TransferQueueLoad load{.concurrency = 128, .batch = 128, .capacity_batches = q, .group_tail = 1.4};
        load.utilization = std::nextafter(1.0, 0.0);
        const double below = in_store_staleness(load);
        load.utilization = std::nextafter(1.0, 2.0);
        const double above = in_store_staleness(load);
        load.utilization = 1.0;
        CHECK(below == doctest::Approx(1.0));
        CHECK(above == doctest::Approx(q));
        CHECK(in_store_staleness(load) == doctest::Approx(0.5 * (below + above)));
        CHECK(pre_store_staleness(load) == doctest::Approx(1.4));
    }
}

TEST_CASE(
    "a drop-oldest queue fed without end holds its newest batches: q - 1/2 periods of production and half a tick") {
    // As u grows the queue turns over at once: only the tick remains.
    CHECK(in_store_staleness({.capacity_batches = 3.0, .utilization = 1e9}) == doctest::Approx(0.5));
    CHECK(pre_store_staleness({.concurrency = 100, .batch = 50, .utilization = 4.0, .group_tail = 2.0}) == 1.0);
}

TEST_CASE("group tailness: known values") {
    CHECK(lognormal_group_tail(0.7, 1).mean == doctest::Approx(1.0).epsilon(1e-12));
    CHECK(lognormal_group_tail(0.7, 1).variance == doctest::Approx(std::expm1(0.49)).epsilon(1e-11));
    // Two lognormals: E[max]/E[L] = 2 Phi(s / sqrt 2) = 1 + erf(s / 2).
    for (const double s : {0.1, 0.5, 1.0, 2.0, 5.0, 8.0}) {
        CHECK(lognormal_group_tail(s, 2).mean == doctest::Approx(1.0 + std::erf(s / 2.0)).epsilon(1e-12));
    }
    // Small spread: the largest of 4 standard normals has mean 1.02938 and variance 0.49172 (order statistics).
    CHECK((lognormal_group_tail(1e-4, 4).mean - 1.0) / 1e-4 == doctest::Approx(1.02938).epsilon(1e-4));
    CHECK(lognormal_group_tail(1e-4, 4).variance / 1e-8 == doctest::Approx(0.49172).epsilon(1e-3));
    CHECK(lognormal_group_tail(0.0, 16).mean == 1.0);
    CHECK(lognormal_group_tail(0.0, 16).variance == 0.0);
}

TEST_CASE("the spread that gives a measured tailness") {
    for (const int size : {2, 8, 16, 64}) {
        for (const double log_sd : {0.0, 0.01, 0.3, 0.9, 2.5}) {
            const double m_tail = lognormal_group_tail(log_sd, size).mean;
            CHECK(lognormal_log_sd(m_tail, size) == doctest::Approx(log_sd).epsilon(1e-9));
        }
    }
    CHECK(lognormal_group_tail(lognormal_log_sd(1.43, 8), 8).mean == doctest::Approx(1.43).epsilon(1e-12));
    CHECK_THROWS_AS(lognormal_log_sd(0.99, 8), std::domain_error);
    CHECK_THROWS_AS(lognormal_log_sd(8.0, 8), std::domain_error);  // the longest is less than the sum
    CHECK_THROWS_AS(lognormal_log_sd(1.0, 1), std::domain_error);
}

TEST_CASE("loads without a meaning are refused") {
    CHECK_THROWS_AS(mean_staleness({.concurrency = 0.0}), std::domain_error);
    CHECK_THROWS_AS(mean_staleness({.batch = -1.0}), std::domain_error);
    CHECK_THROWS_AS(mean_staleness({.capacity_batches = 0.5}), std::domain_error);
    CHECK_THROWS_AS(mean_staleness({.utilization = std::nan("")}), std::domain_error);
    CHECK_THROWS_AS(mean_staleness({.group_tail = 0.9}), std::domain_error);
    CHECK_THROWS_AS(lognormal_group_tail(-0.1, 8), std::domain_error);
    CHECK_THROWS_AS(lognormal_group_tail(0.1, 0), std::domain_error);
}

TEST_CASE("group tails are the same bits in every build on every x86-64 machine") {
    CHECK(lognormal_group_tail(0.7, 16).mean == 0x1.747fa8ac0a42ap+1);
    CHECK(lognormal_group_tail(0.7, 16).variance == 0x1.a2c3312d212a8p+0);
    CHECK(lognormal_log_sd(2.5, 16) == 0x1.2bee422d64ddp-1);
}
