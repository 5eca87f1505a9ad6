// Where the warm-up of a simulation ends.
#pragma once

#include <cstdint>
#include <span>

namespace millrace {

/// MSER-5 (White, Cobb, Spratt 2000): of the series' means over batches of five, how many observations to cut from the
/// front so that the standard error of the mean of the rest is smallest. At most half the series is considered, as
/// the method's authors advise; a result at that limit means that the series never settled. Give it the series
/// averaged over replications: on single runs it cuts at excursions and biases the mean.
std::int64_t mser5(std::span<const double> series);

}  // namespace millrace
