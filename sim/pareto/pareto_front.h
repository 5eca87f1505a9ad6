// The Pareto front of points with two or three objectives, and the hypervolume under it; both exact.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace millrace {

/// Values of the objectives, each turned so that less is better (toward_minimum). With two objectives the third is 0 in
/// all points.
using ObjectivePoint = std::array<double, 3>;

/// An objective's value, turned so that less is better; its own inverse.
inline double toward_minimum(double value, bool minimize) {
    return minimize ? value : -value;
}

/// Whether a is no worse than b in every objective and better in one. Equal points do not dominate each other.
bool dominates(const ObjectivePoint& a, const ObjectivePoint& b);

/// Indices, ascending, of the points that no other dominates; all copies of such a point are among them. O(n log n).
/// Throws std::invalid_argument for a value that is not finite.
std::vector<std::size_t> pareto_front(std::span<const ObjectivePoint> points);

/// Area or volume of what at least one point dominates within the box that ends at `reference`, in the product of the
/// objectives' units. A point that is not better than the reference in every objective adds nothing. `objectives` is 2
/// or 3. O(n log n). Throws std::invalid_argument for a value that is not finite.
double hypervolume(std::span<const ObjectivePoint> points, const ObjectivePoint& reference, std::size_t objectives);

}  // namespace millrace
