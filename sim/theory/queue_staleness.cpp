#include "sim/theory/queue_staleness.h"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <sstream>
#include <stdexcept>

#include "sim/engine/portable_math.h"
#include "sim/theory/arguments.h"

namespace millrace {

namespace {

constexpr double largest_log_sd = 8.0;

void require_load(const TransferQueueLoad& load) {
    require_positive(load.concurrency, "concurrency");
    require_positive(load.batch, "batch");
    require(load.capacity_batches >= 1.0 && std::isfinite(load.capacity_batches), "queue capacity",
            "finite and at least one batch", load.capacity_batches);
    require_positive(load.utilization, "utilization");
    require(load.group_tail >= 1.0 && std::isfinite(load.group_tail), "group tailness", "finite and at least 1",
            load.group_tail);
}

}  // namespace

double pre_store_staleness(const TransferQueueLoad& load) {
    require_load(load);
    return load.concurrency * load.group_tail / (load.batch * std::max(1.0, load.utilization));
}

double in_store_staleness(const TransferQueueLoad& load) {
    require_load(load);
    const double u = load.utilization;
    const double q = load.capacity_batches;
    if (u < 1.0) {
        return u;
    }
    return u > 1.0 ? (2.0 * q + u - 1.0) / (2.0 * u) : 0.5 * (1.0 + q);
}

double mean_staleness(const TransferQueueLoad& load) {
    return pre_store_staleness(load) + in_store_staleness(load);
}

double staleness_variance(const TransferQueueLoad& load, double relative_tail_variance) {
    require_load(load);
    require(load.utilization < 1.0, "utilization", "below 1 for the variance law", load.utilization);
    require(relative_tail_variance >= 0.0 && std::isfinite(relative_tail_variance),
            "variance of the longest of a group", "zero or positive and finite", relative_tail_variance);
    const double batches_in_flight = load.concurrency / load.batch;
    return batches_in_flight * batches_in_flight * relative_tail_variance + 1.0 / 6.0;
}

// ---- group tailness -----------------------------------------------------------------------------------------------

namespace {

/// E[max^power] / E[L]^power for power 1 or 2: the integral of size phi(z) Phi(z)^(size-1) exp(power s z - power s^2/2)
/// by the trapezoidal rule, which converges faster than any power of the step for such a smooth, decaying integrand.
double tail_moment(double log_sd, int size, double power) {
    constexpr double step = 1.0 / 64;
    const double lowest = -12.0;
    const double highest = power * log_sd + 14.0;  // the integrand is a normal density at power s, times Phi^(size-1)
    double sum = 0.0;
    for (double z = lowest; z <= highest; z += step) {
        const double phi_log = -0.5 * z * z + power * log_sd * (z - 0.5 * log_sd);
        sum += portable::exp(phi_log) * portable::pow(portable::normal_cdf(z), size - 1);
    }
    return size * sum * step / std::sqrt(2.0 * std::numbers::pi);
}

}  // namespace

GroupTail lognormal_group_tail(double log_sd, int size) {
    require(log_sd >= 0.0 && log_sd <= largest_log_sd, "standard deviation of the log length", "between 0 and 8",
            log_sd);
    require(size >= 1, "group size", "at least one rollout", size);
    if (log_sd == 0.0) {
        return {.mean = 1.0, .variance = 0.0};
    }
    const double mean = tail_moment(log_sd, size, 1.0);
    return {.mean = mean, .variance = std::max(0.0, tail_moment(log_sd, size, 2.0) - mean * mean)};
}

double lognormal_log_sd(double group_tail, int size) {
    require(size >= 2, "group size", "at least two rollouts", size);
    const double largest = tail_moment(largest_log_sd, size, 1.0);
    if (!(group_tail >= 1.0 && group_tail <= largest)) {
        std::ostringstream sentence;
        sentence << "The tailness of a group of " << size << " lognormal lengths must be between 1 and " << largest
                 << ", but is " << group_tail << ".";
        throw std::domain_error(sentence.str());
    }
    const auto excess = [=](double log_sd) { return tail_moment(log_sd, size, 1.0) - group_tail; };
    const double at_zero = 1.0 - group_tail;
    if (at_zero == 0.0) {
        return 0.0;
    }
    if (largest == group_tail) {
        return largest_log_sd;
    }
    std::uintmax_t iterations = 100;
    const auto [below, above] =
        boost::math::tools::toms748_solve(excess, 0.0, largest_log_sd, at_zero, largest - group_tail,
                                          boost::math::tools::eps_tolerance<double>(48), iterations);
    return 0.5 * (below + above);
}

}  // namespace millrace
