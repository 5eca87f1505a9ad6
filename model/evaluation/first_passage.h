// When a learning curve gets somewhere.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace millrace {

/// Running mean of each point with the one before and the one after it, as far as they exist: a single evaluation is
/// off by about .01 to .02, which would make first passages lucky.
std::vector<double> smoothed(std::span<const double> values);

/// Where `values`, straight between its points, first reaches `target`: in the units of `at`, which ascends. None if it
/// never does.
std::optional<double> first_passage(std::span<const double> at, std::span<const double> values, double target);

}  // namespace millrace
