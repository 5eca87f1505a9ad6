// What lies between two designs of a family on its axes: the values of new designs in a gap of the frontier.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/design.h"

namespace millrace {

/// The number that a value of an axis is; none when it is no number.
std::optional<double> number_in(const std::string& json);

/// Whether a number is written as a whole one.
bool is_whole(const std::string& json);

/// Whether an axis with these two values seems to be stepped by factors: positive ones, four times apart or more.
bool is_by_factors(double low, double high);

/// Whether there is nothing between the two.
bool are_neighbours(const std::string& a, const std::string& b);

/// Columns in which the two differ, by place; none when their axes are not the same.
std::optional<std::vector<std::size_t>> differing_columns(const Design& a, const Design& b);

/// Such columns by the axis they come from.
std::vector<std::vector<std::size_t>> by_axis(const Design& design, const std::vector<std::size_t>& columns);

/// Columns of a zip go together, as workers and trainers of a fixed number of GPUs do: a row between two of theirs has
/// the same share of the way in each column, to a twentieth. The row nearest to the middle in which that is whole where
/// it has to be; none when there is none.
std::optional<std::vector<std::string>> zipped_middle(const Design& from, const Design& to,
                                                      const std::vector<std::size_t>& columns, bool geometric);

/// The middle of two designs and what rounding makes of it, nearest first; the ends themselves may be among it. The
/// columns of a zip that has no row between have those of either end. `geometric`: of axes stepped by factors the
/// geometric mean.
std::vector<AxisValues> middles(const Design& from, const Design& to, const std::vector<std::size_t>& columns,
                                bool geometric);

}  // namespace millrace
