// The hypervolume of a front that is known from replications, with an interval.
//
// The hypervolume of the means is biased upward: among designs that are nearly as good, noise makes some look better,
// and a hypervolume takes the best. Repeating the replications would show it, and so does leaving them out one at a
// time, each from all designs at once, because replication r of all designs shares its random streams: the jackknife.
// It corrects the bias of order 1 / replications, needs no random numbers, and its error is that of the differences
// between designs under common random numbers. A bootstrap of replications would double the bias before it could
// correct it. Both rest on the hypervolume being smooth in the means, which it is except where designs tie.
// Where replications are allotted by what earlier ones showed, a mean that looks bad by chance is not looked at again;
// that bias is removed in part only. Measured on synthetic studies (tests/pareto/hypervolume_estimate_test.cpp): a bias
// of 0.018 becomes 0.001 with equal replications, 0.020 becomes 0.012 with adaptive ones; 95 % intervals cover 92 to
// 97 %.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/pareto/pareto_decision.h"
#include "sim/pareto/pareto_front.h"

namespace millrace {

struct HypervolumeEstimate {
    double value = 0.0;                ///< of the means, in the product of the objectives' units
    double mean = 0.0;                 ///< corrected for bias, not below 0; value when there is no interval
    std::optional<double> half_width;  ///< around `mean`, at the confidence asked for; what lies below 0 is cut off
    std::string note;                  ///< why half_width is absent, or that the interval is cut; empty otherwise
};

/// A half-width that comes from the rounding of sums alone (equal values whose mean has another last digit) is 0.
std::optional<double> without_rounding(double mean, std::optional<double> half_width);

/// Of the designs that have values, up to `reference` (less is better, as in the samples; its third entry is ignored
/// with two objectives). Designs may have unequal numbers of replications: the t interval has the degrees of freedom of
/// the fewest. The reference is taken as given, so an interval says nothing of how it was chosen.
HypervolumeEstimate estimate_hypervolume(std::span<const ObjectiveSamples> samples, const ObjectivePoint& reference,
                                         double confidence);

/// Means over all replications of each design that has values, in their order.
std::vector<ObjectivePoint> mean_points(std::span<const ObjectiveSamples> samples);

/// The worst mean in each objective and a tenth of the range of means beyond it (of its size when they are all equal, 1
/// when that is 0), so that the ends of a front count too.
ObjectivePoint default_reference(std::span<const ObjectivePoint> means);

}  // namespace millrace
