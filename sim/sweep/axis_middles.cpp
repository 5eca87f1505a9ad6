#include "sim/sweep/axis_middles.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/engine/portable_math.h"
#include "sim/scenario/object_reader.h"

namespace millrace {
namespace {

/// Ways to round the axes of one proposal: 2 to this power.
constexpr std::size_t most_rounded_axes = 6;

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

}  // namespace

std::optional<double> number_in(const std::string& json) {
    double value = 0.0;
    const auto [end, fault] = std::from_chars(json.data(), json.data() + json.size(), value);
    return fault == std::errc{} && end == json.data() + json.size() ? std::optional(value) : std::nullopt;
}

bool is_whole(const std::string& json) {
    return json.find_first_of(".eE") == std::string::npos;
}

bool is_by_factors(double low, double high) {
    return low > 0.0 && high >= 4.0 * low;
}

bool are_neighbours(const std::string& a, const std::string& b) {
    const std::vector<Choice> between = choices(a, b, false);
    return std::all_of(between.begin(), between.end(),
                       [&](const Choice& choice) { return choice.value == a || choice.value == b; });
}

std::optional<std::vector<std::size_t>> differing_columns(const Design& a, const Design& b) {
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
                double value = geometric && is_by_factors(low, high) ? begin * portable::pow(end / begin, share)
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

}  // namespace millrace
