// The axes of a family of designs: which values go to which path of the base scenario.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/json_document.h"

namespace millrace {

/// More combinations than this are a typing error.
inline constexpr std::int64_t most_combinations = 100'000;

struct AxisColumn {
    std::string path;  ///< dotted, of the scenario
    Place path_place;
    std::vector<std::string> values;      ///< canonical JSON, at least one, all different
    std::vector<Place> value_places;      ///< where each comes from
    std::vector<std::string> value_keys;  ///< and the dotted path there
};

/// One column, or several that go together row by row ("zip").
struct Axis {
    std::vector<AxisColumn> columns;
    std::size_t size() const { return columns.front().values.size(); }
};

/// Reads the list of axes at `path` of the sweep file. What is wrong is reported; the axes that were read whole are
/// returned.
std::vector<Axis> read_axes(const JsonNode& list, const std::string& path, Diagnostics& diagnostics);

/// Reports a path of the scenario that no scenario has. `place` is that of the string that holds it.
bool check_path(const std::string& path, Place place, const std::string& key, Diagnostics& diagnostics);

/// Whether dotted path `inner` is `outer` or names something in it.
bool lies_in(std::string_view inner, std::string_view outer);

/// from, from + step, ... up to `to`, in exact decimal arithmetic on the numbers as they are written: 0.1 to 0.5 by 0.1
/// has 0.3, not 0.30000000000000004. Empty when the numbers differ too much in size for that (more than 15 digits).
/// 0 < step, from <= to, and at most most_combinations values.
std::vector<double> range_values(double from, double to, double step);

/// `count` >= 2 numbers with equal ratios from `from` > 0 to `to`. Between the ends, rounded to whole numbers when both
/// ends are whole, else to 6 digits: the same on every machine. What repeats is left out.
std::vector<double> log_range_values(double from, double to, std::int64_t count);

}  // namespace millrace
