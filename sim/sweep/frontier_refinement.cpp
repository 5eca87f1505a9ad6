#include "sim/sweep/frontier_refinement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "sim/sweep/axis_middles.h"

namespace millrace {
namespace {

class Refiner {
   public:
    Refiner(std::span<const Design> designs, const DesignMaker& make, Refinement& result)
        : designs_(designs), make_(make), result_(result) {}

    void bisect(const FrontierGap& gap) {
        const Design& from = designs_[gap.from];
        const Design& to = designs_[gap.to];
        const auto axes = differing_columns(from, to);
        if (!axes) {
            return refuse(gap, "they belong to different families");
        }
        std::string reason = "they have the same values";
        bool by_factors = false;
        for (const std::size_t axis : *axes) {
            const auto& [path, value] = from.values[axis];
            const std::string& other = to.values[axis].second;
            if (path == "seed" || path == "name") {
                return refuse(gap, "they differ in " + path + ", which measures nothing");
            }
            if (!number_in(value) || !number_in(other)) {
                return refuse(gap, "they differ in " + path + ", which is no number");
            }
            // A list, for two temporaries: minmax of two arguments returns references to them.
            const auto [low, high] = std::minmax({*number_in(value), *number_in(other)});
            by_factors = by_factors || is_by_factors(low, high);
            if (are_neighbours(value, other)) {
                reason = value + " and " + other + " of " + path + " have no " +
                         (is_whole(value) && is_whole(other) ? "whole number" : "number") + " between them";
            }
        }
        for (const std::vector<std::size_t>& group : by_axis(from, *axes)) {
            if (group.size() > 1 && !zipped_middle(from, to, group, false)) {
                reason = "axes that are zipped have no row between theirs whose numbers are whole";
            }
        }
        std::vector<AxisValues> candidates = middles(from, to, *axes, true);
        if (by_factors) {
            const std::vector<AxisValues> arithmetic = middles(from, to, *axes, false);
            candidates.insert(candidates.end(), arithmetic.begin(), arithmetic.end());
        }
        bool tried = false;
        for (const AxisValues& values : candidates) {
            if (values == from.values || values == to.values) {
                continue;
            }
            if (const std::string known = known_as(from.family, values); !known.empty()) {
                reason = tried ? reason : "the design in the middle is " + known + " already";
                tried = true;
                continue;
            }
            MadeDesign made = make_(from.family, values);
            if (made.design && is_proposed(made.design->id)) {
                made = {std::nullopt, "the design in the middle is proposed already"};
            }
            if (made.design) {
                result_.proposed.push_back({gap, std::move(*made.design)});
                return;
            }
            reason = tried ? reason : made.reason;
            tried = true;
        }
        refuse(gap, reason);
    }

   private:
    void refuse(const FrontierGap& gap, std::string reason) { result_.refused.push_back({gap, std::move(reason)}); }

    /// "there", "proposed" or nothing.
    std::string known_as(const std::string& family, const AxisValues& values) const {
        const auto same = [&](const Design& design) { return design.family == family && design.values == values; };
        if (std::any_of(designs_.begin(), designs_.end(), same)) {
            return "there";
        }
        return std::any_of(result_.proposed.begin(), result_.proposed.end(),
                           [&](const ProposedDesign& earlier) { return same(earlier.design); })
                   ? "proposed"
                   : "";
    }

    bool is_proposed(const std::string& id) const {
        return !id.empty() && std::any_of(result_.proposed.begin(), result_.proposed.end(),
                                          [&](const ProposedDesign& earlier) { return earlier.design.id == id; });
    }

    std::span<const Design> designs_;
    const DesignMaker& make_;
    Refinement& result_;
};

/// Of the designs at the two ends, the pair of one family that differs in the fewest axes; else the first of each.
std::pair<std::size_t, std::size_t> nearest_pair(std::span<const Design> designs, std::span<const std::size_t> left,
                                                 std::span<const std::size_t> right) {
    std::pair nearest(left.front(), right.front());
    std::optional<std::size_t> fewest;
    for (const std::size_t a : left) {
        for (const std::size_t b : right) {
            const auto axes = differing_columns(designs[a], designs[b]);
            if (axes && (!fewest || axes->size() < *fewest)) {
                fewest = axes->size();
                nearest = {a, b};
            }
        }
    }
    return nearest;
}

/// The points of a frontier, in ascending order, and the designs at each.
struct Places {
    std::vector<ObjectivePoint> points;
    std::vector<std::vector<std::size_t>> designs;
    ObjectivePoint extent{};
};

Places places_of(std::span<const ObjectivePoint> points, std::span<const std::size_t> front) {
    std::vector<std::size_t> order(front.begin(), front.end());
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return points[a] != points[b] ? points[a] < points[b] : a < b; });
    Places places;
    for (const std::size_t design : order) {
        if (places.points.empty() || places.points.back() != points[design]) {
            places.points.push_back(points[design]);
            places.designs.emplace_back();
        }
        places.designs.back().push_back(design);
    }
    for (std::size_t j = 0; j < places.extent.size(); ++j) {
        const auto [least, most] =
            std::minmax_element(places.points.begin(), places.points.end(),
                                [&](const ObjectivePoint& a, const ObjectivePoint& b) { return a[j] < b[j]; });
        places.extent[j] = (*most)[j] - (*least)[j];
    }
    return places;
}

double distance(const Places& places, std::size_t a, std::size_t b) {
    double squares = 0.0;
    for (std::size_t j = 0; j < places.extent.size(); ++j) {
        const double share =
            places.extent[j] > 0.0 ? (places.points[a][j] - places.points[b][j]) / places.extent[j] : 0.0;
        squares += share * share;
    }
    return std::sqrt(squares);
}

/// Pairs of neighbours along a frontier with two objectives.
std::vector<std::pair<std::size_t, std::size_t>> chain(const Places& places) {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t i = 0; i + 1 < places.points.size(); ++i) {
        pairs.emplace_back(i, i + 1);
    }
    return pairs;
}

/// Edges of the minimum spanning tree, by Prim's algorithm; of equal distances the first point's.
std::vector<std::pair<std::size_t, std::size_t>> spanning_tree(const Places& places) {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    const std::size_t size = places.points.size();
    std::vector<bool> reached(size, false);
    std::vector<double> nearest(size, std::numeric_limits<double>::infinity());
    std::vector<std::size_t> from(size, 0);
    for (std::size_t latest = 0; pairs.size() + 1 < size;) {
        reached[latest] = true;
        std::size_t next = size;
        for (std::size_t i = 0; i < size; ++i) {
            if (reached[i]) {
                continue;
            }
            if (const double here = distance(places, latest, i); here < nearest[i]) {
                nearest[i] = here;
                from[i] = latest;
            }
            next = next == size || nearest[i] < nearest[next] ? i : next;
        }
        pairs.emplace_back(from[next], next);
        latest = next;
    }
    return pairs;
}

}  // namespace

Refinement refine_frontier(std::span<const Design> designs, std::span<const ObjectivePoint> points,
                           std::span<const std::size_t> front, std::size_t objectives, const RefinementRules& rules,
                           const DesignMaker& make) {
    Refinement result;
    if (front.size() < 2) {
        result.note = "a frontier of fewer than two designs has no gaps";
        return result;
    }
    const Places places = places_of(points, front);
    std::vector<FrontierGap> gaps;
    for (const auto& [a, b] : objectives == 2 ? chain(places) : spanning_tree(places)) {
        const auto [from, to] = nearest_pair(designs, places.designs[a], places.designs[b]);
        gaps.push_back({from, to, distance(places, a, b)});
    }
    std::stable_sort(gaps.begin(), gaps.end(),
                     [](const FrontierGap& a, const FrontierGap& b) { return a.width > b.width; });
    Refiner refiner(designs, make, result);
    for (const FrontierGap& gap : gaps) {
        if (result.proposed.size() >= rules.most ||
            (!result.proposed.empty() && gap.width < rules.least_share * result.proposed.front().gap.width)) {
            break;
        }
        refiner.bisect(gap);
    }
    return result;
}

}  // namespace millrace
