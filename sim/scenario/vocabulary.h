// The keys a scenario may have: where each stands, whether it must be given, and what it is when it is not.
//
// This is the one table of names and defaults. The decoder reads through it, so a key that is not here is an error
// everywhere, and a default that is written here is the only one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

struct KeyRule {
    std::string_view name;
    enum class Presence { required, optional, defaulted } presence = Presence::required;
    std::string_view default_json = "";  ///< for `defaulted`
};

/// An object of the scenario. Objects with a `kind` have one shape per kind.
struct ObjectShape {
    std::string_view path;  ///< dotted; "" is the scenario itself, "law" any distribution
    std::string_view kind;  ///< "" for an object without kinds
    std::vector<KeyRule> keys;
};

std::span<const ObjectShape> object_shapes();

/// The shape of that path and kind, or null.
const ObjectShape* find_shape(std::string_view path, std::string_view kind);

/// The kinds that the object at `path` may have, in the order of the table.
std::vector<std::string_view> kinds_of(std::string_view path);

/// Where else a key called `name`, or nearly so, would be right: full dotted paths such as "workers.count". Exact
/// matches anywhere come before near ones in the objects that contain or are contained in the one at `path`.
std::vector<std::string> homes_of(std::string_view name, std::string_view path);

/// Keys that later versions will know.
bool is_future_key(std::string_view path, std::string_view name);

/// Metric keys that `published` may name.
std::span<const std::string_view> metric_keys();

}  // namespace millrace
