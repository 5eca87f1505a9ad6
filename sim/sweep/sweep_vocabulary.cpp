#include "sim/sweep/sweep_vocabulary.h"

#include <algorithm>
#include <vector>

#include "sim/scenario/diagnostics.h"

namespace millrace {
namespace {

constexpr auto required = KeyRule::Presence::required;
constexpr auto optional = KeyRule::Presence::optional;
constexpr auto defaulted = KeyRule::Presence::defaulted;

std::vector<ForeignKey> keys_of_a_scenario() {
    std::vector<ForeignKey> keys;
    for (const std::string_view name : {"workers", "groups", "reward", "trainers", "store", "weight_sync", "admission",
                                        "noise", "learner", "price", "published"}) {
        keys.push_back({"", name, "a sweep file has no pipeline of its own",
                        "the scenario goes into a file that a family names as its \"base\""});
    }
    for (const std::string_view name : {"seed", "horizon"}) {
        keys.push_back({"", name, "a sweep file has no scenario of its own",
                        "a family changes its base by \"set\": {\"seed\": 7, \"horizon.updates\": 2000}"});
    }
    keys.push_back({"", "axes", "axes belong to a family", "", "families"});
    keys.push_back({"families.axes.zip", "zip", "a zip within a zip", "give its axes to the outer one"});
    return keys;
}

/// The keys that an object of a scenario may have, whatever its kind; empty when there is no such object.
std::vector<std::string_view> keys_at(std::string_view path) {
    std::vector<std::string_view> names;
    for (const ObjectShape& shape : scenario_vocabulary().shapes()) {
        if (shape.path != path) {
            continue;
        }
        for (const KeyRule& key : shape.keys) {
            if (std::find(names.begin(), names.end(), key.name) == names.end()) {
                names.push_back(key.name);
            }
        }
    }
    std::erase(names, "$schema");
    return names;
}

/// The steps that may follow a law or a list.
std::vector<std::string_view> keys_within_values() {
    std::vector<std::string_view> names = keys_at("law");
    for (const std::string_view path : {"law.component", "published"}) {
        for (const std::string_view name : keys_at(path)) {
            names.push_back(name);
        }
    }
    return names;
}

bool is_index(std::string_view step) {
    return !step.empty() && std::all_of(step.begin(), step.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string dotted(std::string_view before, std::string_view step) {
    return before.empty() ? std::string(step) : std::string(before) + "." + std::string(step);
}

/// All paths of scenarios, for a path that is wrong in its dots.
std::string nearest_path(std::string_view path) {
    std::vector<std::string> paths;
    for (const ObjectShape& shape : scenario_vocabulary().shapes()) {
        if (!shape.path.starts_with("law")) {
            for (const KeyRule& key : shape.keys) {
                paths.push_back(dotted(shape.path, key.name));
            }
        }
    }
    const std::vector<std::string_view> views(paths.begin(), paths.end());
    return nearest_name(path, views);
}

}  // namespace

const Vocabulary& sweep_vocabulary() {
    static const Vocabulary vocabulary(
        {{"",
          "",
          {{"$schema", optional},
           {"name", required},
           {"description", defaulted, R"("")"},
           {"families", required},
           {"objectives", required},
           {"replications", defaulted, "10"},
           {"refine", optional}}},
         {"families",
          "",
          {{"name", required},
           {"base", required},
           {"base_file", optional},  // in the resolved form, whose base is the scenario itself
           {"set", defaulted, "{}"},
           {"axes", defaulted, "[]"},
           {"constraints", defaulted, "[]"}}},
         {"families.axes",
          "",
          {{"path", optional}, {"values", optional}, {"range", optional}, {"log_range", optional}, {"zip", optional}}},
         {"families.axes.zip",
          "",
          {{"path", required}, {"values", optional}, {"range", optional}, {"log_range", optional}}},
         {"families.axes.range", "", {{"from", required}, {"to", required}, {"step", defaulted, "1"}}},
         {"families.axes.log_range", "", {{"from", required}, {"to", required}, {"count", required}}},
         {"objectives", "", {{"metric", required}, {"goal", required}}},
         {"replications", "", {{"least", required}, {"most", required}, {"budget", required}}},
         {"refine", "", {{"designs", required}}}},
        keys_of_a_scenario());
    return vocabulary;
}

PathFault check_scenario_path(std::string_view path) {
    std::string_view object;  // the part of the path that is known to name an object
    bool within_value = false;
    std::size_t begin = 0;
    while (begin <= path.size()) {
        const std::size_t end = std::min(path.find('.', begin), path.size());
        const std::string_view step = path.substr(begin, end - begin);
        const std::string_view before = path.substr(0, begin == 0 ? 0 : begin - 1);
        const std::string_view rest = path.substr(end);
        if (step.empty()) {
            return {begin, path.empty() ? "expected the path of a scenario's key" : "the path has an empty step", "",
                    "steps are separated by single dots, as in trainers.count"};
        }
        const std::vector<std::string_view> names = within_value ? keys_within_values() : keys_at(object);
        if (std::find(names.begin(), names.end(), step) == names.end() && !(within_value && is_index(step))) {
            const std::string where = before.empty() ? "no scenario has" : std::string(before) + " has no";
            const std::string message = where + " \"" + std::string(step) + "\"";
            if (const ForeignKey* foreign = scenario_vocabulary().find_foreign(before, step)) {
                return {begin, std::string(foreign->message),
                        foreign->suggestion.empty() ? "" : dotted(before, foreign->suggestion),
                        std::string(foreign->hint)};
            }
            // The path with the nearest step in place of this one; a path that stays wrong is a worse guess than
            // the nearest of all paths or the key's home elsewhere.
            const std::string nearest = nearest_name(step, names);
            const std::string mended = nearest.empty() ? "" : dotted(before, nearest) + std::string(rest);
            if (!mended.empty() && check_scenario_path(mended).message.empty()) {
                return {begin, message, mended, ""};
            }
            if (!mended.empty() && !check_scenario_path(mended).suggestion.empty()) {
                return {begin, message, check_scenario_path(mended).suggestion, ""};
            }
            if (std::string whole = nearest_path(path); !whole.empty()) {
                return {begin, message, whole, ""};
            }
            const std::vector<std::string> homes = scenario_vocabulary().homes_of(step, object);
            return {begin, message, within_value || homes.empty() ? "" : homes.front(), ""};
        }
        if (!within_value) {
            object = path.substr(0, end);
            within_value = keys_at(object).empty() || object == "published";
        }
        begin = end + 1;
    }
    return {};
}

}  // namespace millrace
