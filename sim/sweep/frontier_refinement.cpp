#include "sim/sweep/frontier_refinement.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "sim/scenario/object_reader.h"

namespace millrace {
namespace {

/// Ways to round the axes of one proposal: 2 to this power.
constexpr std::size_t most_rounded_axes = 6;

std::optional<double> number_in(const std::string& json) {
    double value = 0.0;
    const auto [end, fault] = std::from_chars(json.data(), json.data() + json.size(), value);
    return fault == std::errc{} && end == json.data() + json.size() ? std::optional(value) : std::nullopt;
}

bool is_whole(const std::string& json) {
    return json.find_first_of(".eE") == std::string::npos;
}

/// The number with 6 digits, if it still lies between the two.
double with_few_digits(double value, double low, double high) {
    char text[40];
    const auto [end, fault] = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, 5);
    double rounded = 0.0;
    std::from_chars(text, end, rounded);
    return rounded > low && rounded < high ? rounded : value;
}

/// What one axis of a proposal may be, the nearest to the middle first, and how far from it in units of the gap.
struct Choice {
    std::string value;
    double distance = 0.0;
};

bool is_by_factors(double low, double high) {
    return low > 0.0 && high >= 4.0 * low;
}

std::vector<Choice> choices(const std::string& a, const std::string& b, bool geometric) {
    const double low = std::min(*number_in(a), *number_in(b));
    const double high = std::max(*number_in(a), *number_in(b));
    const double middle =
        geometric && is_by_factors(low, high) ? std::sqrt(low) * std::sqrt(high) : low + (high - low) / 2.0;
    std::vector<Choice> result;
    if (is_whole(a) && is_whole(b)) {
        const double nearest = std::floor(middle + 0.5);
        const double other = nearest > middle ? nearest - 1.0 : nearest + 1.0;
        for (const double value : {nearest, other}) {
            result.push_back({number_text(value), std::abs(value - middle) / (high - low)});
        }
        if (nearest == middle) {
            result.pop_back();
        }
    } else {
        const double value = with_few_digits(middle, low, high);
        result.push_back({number_text(value), 0.0});
        if (!(value > low && value < high)) {  // neighbours
            result = {{a, 0.5}, {b, 0.5}};
        }
    }
    return result;
}

/// Whether there is nothing between the two.
bool are_neighbours(const std::string& a, const std::string& b) {
    const std::vector<Choice> between = choices(a, b, false);
    return std::all_of(between.begin(), between.end(),
                       [&](const Choice& choice) { return choice.value == a || choice.value == b; });
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

/// Columns of a zip go together, as workers and trainers of a fixed number of GPUs do: a row between two of theirs has
/// the same share of the way in each column. The one nearest to the middle in which that is whole where it has to be;
/// none when there is none. In place of the whole numbers nobody minds a rounding by a twentieth of the way.
std::optional<std::vector<std::string>> zipped_middle(const Design& from, const Design& to,
                                                      const std::vector<std::size_t>& columns, bool geometric) {
    constexpr int most_parts = 64;
    constexpr double off_the_way = 0.05;
    std::optional<std::vector<std::string>> best;
    double best_distance = 0.5;
    for (int parts = 2; parts <= most_parts; ++parts) {
        for (int part = 1; part < parts; ++part) {
            const double share = static_cast<double>(part) / parts;
            const double distance = std::abs(share - 0.5);
            if (distance >= best_distance) {
                continue;
            }
            std::vector<std::string> row;
            for (const std::size_t column : columns) {
                const std::string& a = from.values[column].second;
                const std::string& b = to.values[column].second;
                const double begin = *number_in(a);
                const double end = *number_in(b);
                const auto [low, high] = std::minmax(begin, end);
                double value = geometric && is_by_factors(low, high) ? begin * std::pow(end / begin, share)
                                                                     : begin + share * (end - begin);
                if (is_whole(a) && is_whole(b)) {
                    const double whole = std::floor(value + 0.5);
                    if (std::abs(whole - value) > off_the_way * (high - low)) {
                        break;
                    }
                    value = whole;
                } else {
                    value = with_few_digits(value, low, high);
                }
                if (value == begin || value == end) {
                    break;
                }
                row.push_back(number_text(value));
            }
            if (row.size() == columns.size()) {
                best = std::move(row);
                best_distance = distance;
            }
        }
        if (best && best_distance == 0.0) {
            break;
        }
    }
    return best;
}

/// What the columns of a zip may be: the row between, else those of either end.
std::vector<std::vector<std::string>> zip_rows(const Design& from, const Design& to,
                                               const std::vector<std::size_t>& columns, bool geometric) {
    if (auto between = zipped_middle(from, to, columns, geometric)) {
        return {std::move(*between)};
    }
    std::vector<std::vector<std::string>> ends(2);
    for (const std::size_t column : columns) {
        ends[0].push_back(from.values[column].second);
        ends[1].push_back(to.values[column].second);
    }
    return ends;
}

using Candidates = std::vector<std::pair<double, AxisValues>>;  ///< with squares of distances from the middle

Candidates with_rows(const Candidates& all, const std::vector<std::size_t>& columns,
                     const std::vector<std::vector<std::string>>& rows) {
    const double distance = rows.size() == 1 ? 0.0 : 0.25;
    Candidates longer;
    for (const auto& [before, values] : all) {
        for (const std::vector<std::string>& row : rows) {
            longer.emplace_back(before + distance, values);
            for (std::size_t i = 0; i < columns.size(); ++i) {
                longer.back().second[columns[i]].second = row[i];
            }
        }
    }
    return longer;
}

/// Differing columns by the axis they come from.
std::vector<std::vector<std::size_t>> by_axis(const Design& design, const std::vector<std::size_t>& columns) {
    std::vector<std::vector<std::size_t>> groups;
    for (const std::size_t column : columns) {
        const bool joins =
            !groups.empty() && column < design.axes.size() && design.axes[column] == design.axes[groups.back().back()];
        if (joins) {
            groups.back().push_back(column);
        } else {
            groups.push_back({column});
        }
    }
    return groups;
}

/// The middle of two designs and what rounding makes of it, nearest first.
std::vector<AxisValues> middles(const Design& from, const Design& to, const std::vector<std::size_t>& columns,
                                bool geometric) {
    Candidates all = {{0.0, from.values}};
    std::size_t rounded = 0;
    for (const std::vector<std::size_t>& group : by_axis(from, columns)) {
        if (group.size() > 1) {
            all = with_rows(all, group, zip_rows(from, to, group, geometric));
            continue;
        }
        const std::size_t axis = group.front();
        std::vector<Choice> here = choices(from.values[axis].second, to.values[axis].second, geometric);
        if (here.size() > 1 && ++rounded > most_rounded_axes) {
            here.resize(1);
        }
        Candidates longer;
        for (const auto& [distance, values] : all) {
            for (const Choice& choice : here) {
                longer.emplace_back(distance + choice.distance * choice.distance, values);
                longer.back().second[axis].second = choice.value;
            }
        }
        all = std::move(longer);
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<AxisValues> result;
    for (auto& [distance, values] : all) {
        result.push_back(std::move(values));
    }
    return result;
}

class Refiner {
   public:
    Refiner(std::span<const Design> designs, const DesignMaker& make, Refinement& result)
        : designs_(designs), make_(make), result_(result) {}

    void bisect(const FrontierGap& gap) {
        const Design& from = designs_[gap.from];
        const Design& to = designs_[gap.to];
        const auto axes = differing_axes(from, to);
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
            const auto [low, high] = std::minmax(*number_in(value), *number_in(other));
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
                return refuse(gap, "the design in the middle is " + known + " already");
            }
            MadeDesign made = make_(from.family, values);
            if (made.design) {
                if (is_proposed(made.design->id)) {
                    return refuse(gap, "the design in the middle is proposed already");
                }
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
            const auto axes = differing_axes(designs[a], designs[b]);
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
