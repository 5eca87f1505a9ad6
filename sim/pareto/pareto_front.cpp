#include "sim/pareto/pareto_front.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>

namespace millrace {
namespace {

void check_finite(std::span<const ObjectivePoint> points) {
    for (const ObjectivePoint& point : points) {
        for (const double value : point) {
            if (!std::isfinite(value)) {
                throw std::invalid_argument("a Pareto front needs finite values of all objectives");
            }
        }
    }
}

/// Of the points swept so far, those that none dominates in the last two objectives: the second one by key, ascending,
/// to the third, strictly descending.
using Staircase = std::map<double, double>;

/// Least third objective among steps whose second is at most `second`; `none` without any.
double height_at(const Staircase& stairs, double second, double none) {
    const auto after = stairs.upper_bound(second);
    return after == stairs.begin() ? none : std::prev(after)->second;
}

}  // namespace

bool dominates(const ObjectivePoint& a, const ObjectivePoint& b) {
    return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2] && (a[0] < b[0] || a[1] < b[1] || a[2] < b[2]);
}

std::vector<std::size_t> pareto_front(std::span<const ObjectivePoint> points) {
    check_finite(points);
    std::vector<std::size_t> order(points.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return points[a] != points[b] ? points[a] < points[b] : a < b;  // lexicographic: a dominator comes first
    });
    std::vector<std::size_t> front;
    Staircase stairs;
    bool previous_on_front = false;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const ObjectivePoint& point = points[order[i]];
        const bool copy = i > 0 && point == points[order[i - 1]];
        if (!copy) {
            constexpr double none = std::numeric_limits<double>::infinity();
            previous_on_front = height_at(stairs, point[1], none) > point[2];
            if (previous_on_front) {
                auto step = stairs.lower_bound(point[1]);
                while (step != stairs.end() && step->second >= point[2]) {
                    step = stairs.erase(step);
                }
                stairs[point[1]] = point[2];
            }
        }
        if (previous_on_front) {
            front.push_back(order[i]);
        }
    }
    std::sort(front.begin(), front.end());
    return front;
}

double hypervolume(std::span<const ObjectivePoint> points, const ObjectivePoint& reference, std::size_t objectives) {
    if (objectives != 2 && objectives != 3) {
        throw std::invalid_argument("a hypervolume is of two or three objectives");
    }
    check_finite(points);
    ObjectivePoint end = reference;
    std::vector<ObjectivePoint> inside;
    for (ObjectivePoint point : points) {
        if (objectives == 2) {  // a slice of thickness 1
            point[2] = 0.0;
            end[2] = 1.0;
        }
        if (point[0] < end[0] && point[1] < end[1] && point[2] < end[2]) {
            inside.push_back(point);
        }
    }
    check_finite({&end, 1});
    std::sort(inside.begin(), inside.end());

    // Sweeps the first objective; `area` is what the points so far dominate in the plane of the other two.
    double volume = 0.0;
    double area = 0.0;
    Staircase stairs;
    for (std::size_t i = 0; i < inside.size(); ++i) {
        const auto [first, second, third] = inside[i];
        double height = height_at(stairs, second, end[2]);
        if (height > third) {
            double from = second;
            auto step = stairs.lower_bound(second);
            while (step != stairs.end() && step->second >= third) {
                area += (step->first - from) * (height - third);
                from = step->first;
                height = step->second;
                step = stairs.erase(step);
            }
            area += ((step == stairs.end() ? end[1] : step->first) - from) * (height - third);
            stairs[second] = third;
        }
        volume += area * ((i + 1 < inside.size() ? inside[i + 1][0] : end[0]) - first);
    }
    return volume;
}

}  // namespace millrace
