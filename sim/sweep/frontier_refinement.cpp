#include "sim/sweep/frontier_refinement.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace millrace {
namespace {

std::optional<double> number_in(const std::string& json) {
    double value = 0.0;
    const auto [end, fault] = std::from_chars(json.data(), json.data() + json.size(), value);
    return fault == std::errc{} && end == json.data() + json.size() ? std::optional(value) : std::nullopt;
}

bool is_whole(const std::string& json) {
    return json.find_first_of(".eE") == std::string::npos;
}

/// The value in the middle as JSON; none when there is none between the two.
std::optional<std::string> middle(const std::string& a, const std::string& b) {
    const double low = std::min(*number_in(a), *number_in(b));
    const double high = std::max(*number_in(a), *number_in(b));
    const bool by_factors = low > 0.0 && high >= 4.0 * low;
    double value = by_factors ? std::sqrt(low) * std::sqrt(high) : low + (high - low) / 2.0;
    const bool whole = is_whole(a) && is_whole(b);
    if (whole) {
        value = std::floor(value + 0.5);
    }
    if (!(value > low && value < high)) {  // neighbours
        return std::nullopt;
    }
    return whole ? std::to_string(static_cast<long long>(value)) : nlohmann::json(value).dump();
}

/// Axes in which the two differ, by place; none when their axes are not the same.
std::optional<std::vector<std::size_t>> differing_axes(const Design& a, const Design& b) {
    if (a.family != b.family || a.values.size() != b.values.size()) {
        return std::nullopt;
    }
    std::vector<std::size_t> axes;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        if (a.values[i].first != b.values[i].first) {
            return std::nullopt;
        }
        if (a.values[i].second != b.values[i].second) {
            axes.push_back(i);
        }
    }
    return axes;
}

class Refiner {
   public:
    Refiner(std::span<const Design> designs, Refinement& result) : designs_(designs), result_(result) {}

    void bisect(const FrontierGap& gap) {
        const Design& from = designs_[gap.from];
        const Design& to = designs_[gap.to];
        const auto axes = differing_axes(from, to);
        if (!axes) {
            return refuse(gap, "they belong to different families");
        }
        ProposedDesign proposal{gap, from.family, from.values};
        for (const std::size_t axis : *axes) {
            const auto& [path, value] = from.values[axis];
            const std::string& other = to.values[axis].second;
            if (!number_in(value) || !number_in(other)) {
                return refuse(gap, "they differ in " + path + ", which is no number");
            }
            const std::optional<std::string> between = middle(value, other);
            if (!between) {
                return refuse(gap, value + " and " + other + " of " + path + " have no " +
                                       (is_whole(value) && is_whole(other) ? "whole number" : "number") +
                                       " between them");
            }
            proposal.values[axis].second = *between;
        }
        for (const Design& design : designs_) {
            if (design.family == proposal.family && design.values == proposal.values) {
                return refuse(gap, "the design in the middle is there already");
            }
        }
        for (const ProposedDesign& earlier : result_.proposed) {
            if (earlier.family == proposal.family && earlier.values == proposal.values) {
                return refuse(gap, "the design in the middle is proposed already");
            }
        }
        result_.proposed.push_back(std::move(proposal));
    }

   private:
    void refuse(const FrontierGap& gap, std::string reason) { result_.refused.push_back({gap, std::move(reason)}); }

    std::span<const Design> designs_;
    Refinement& result_;
};

/// Of the designs at the two ends, the pair of one family that differs in the fewest axes; else the first of each.
std::pair<std::size_t, std::size_t> nearest_pair(std::span<const Design> designs, std::span<const std::size_t> left,
                                                 std::span<const std::size_t> right) {
    std::pair nearest(left.front(), right.front());
    std::optional<std::size_t> fewest;
    for (const std::size_t a : left) {
        for (const std::size_t b : right) {
            const auto axes = differing_axes(designs[a], designs[b]);
            if (axes && (!fewest || axes->size() < *fewest)) {
                fewest = axes->size();
                nearest = {a, b};
            }
        }
    }
    return nearest;
}

}  // namespace

Refinement refine_frontier(std::span<const Design> designs, std::span<const ObjectivePoint> points,
                           std::span<const std::size_t> front, std::size_t objectives, std::size_t most) {
    Refinement result;
    if (objectives != 2) {
        result.note = "with three objectives designs have no order along the frontier, so there are no gaps to bisect";
        return result;
    }
    if (front.size() < 2) {
        result.note = "a frontier of fewer than two designs has no gaps";
        return result;
    }
    std::vector<std::size_t> order(front.begin(), front.end());
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return points[a] != points[b] ? points[a] < points[b] : a < b; });
    std::vector<std::vector<std::size_t>> places;  // designs by point
    for (const std::size_t design : order) {
        if (places.empty() || points[places.back().front()] != points[design]) {
            places.emplace_back();
        }
        places.back().push_back(design);
    }
    const auto [least_second, most_second] = std::minmax_element(
        order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return points[a][1] < points[b][1]; });
    const double extent[] = {points[order.back()][0] - points[order.front()][0],
                             points[*most_second][1] - points[*least_second][1]};
    std::vector<FrontierGap> gaps;
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
        const auto [from, to] = nearest_pair(designs, places[i], places[i + 1]);
        double squares = 0.0;
        for (std::size_t j = 0; j < 2; ++j) {
            const double share = extent[j] > 0.0 ? (points[to][j] - points[from][j]) / extent[j] : 0.0;
            squares += share * share;
        }
        gaps.push_back({from, to, std::sqrt(squares)});
    }
    std::stable_sort(gaps.begin(), gaps.end(),
                     [](const FrontierGap& a, const FrontierGap& b) { return a.width > b.width; });
    Refiner refiner(designs, result);
    for (const FrontierGap& gap : gaps) {
        if (result.proposed.size() == most) {
            break;
        }
        refiner.bisect(gap);
    }
    return result;
}

}  // namespace millrace
