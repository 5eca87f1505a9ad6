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

/// Of such a curve, its value at `where`, which lies within `at`.
double value_at(std::span<const double> at, std::span<const double> values, double where);

/// The deepest fall of a curve below a level that it had before; 0 when it only rises.
double largest_drop(std::span<const double> values);

}  // namespace millrace
