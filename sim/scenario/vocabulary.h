// The keys an input file may have: where each stands, whether it must be given, and what it is when it is not.
//
// This is the one table of names and defaults. The decoders read through it, so a key that is not here is an error
// everywhere, and a default that is written here is the only one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace {

struct KeyRule {
    std::string_view name;
    enum class Presence { required, optional, defaulted } presence = Presence::required;
    std::string_view default_json = "";  ///< for `defaulted`
};

/// An object of the file. Objects with a `kind` have one shape per kind.
struct ObjectShape {
    std::string_view path;  ///< dotted; "" is the file itself, "law" any distribution
    std::string_view kind;  ///< "" for an object without kinds
    std::vector<KeyRule> keys;
};

/// A key that does not belong where it stands, and what to say about it.
struct ForeignKey {
    std::string_view path;  ///< of the object without kinds that it stands in
    std::string_view name;
    std::string_view message;
    std::string_view hint = "";
    std::string_view suggestion = "";  ///< the key of the same object that serves its purpose
};

/// All that one kind of file may say.
class Vocabulary {
   public:
    Vocabulary(std::vector<ObjectShape> shapes, std::vector<ForeignKey> foreign)
        : shapes_(std::move(shapes)), foreign_(std::move(foreign)) {}

    /// Objects stand before the ones they contain.
    std::span<const ObjectShape> shapes() const { return shapes_; }

    /// The shape of that path and kind, or null.
    const ObjectShape* find_shape(std::string_view path, std::string_view kind) const;

    /// The kinds that the object at `path` may have, in the order of the table.
    std::vector<std::string_view> kinds_of(std::string_view path) const;

    /// Where else a key called `name`, or nearly so, would be right: full dotted paths such as "workers.count". Exact
    /// matches anywhere come before near ones in the objects that contain or are contained in the one at `path`.
    std::vector<std::string> homes_of(std::string_view name, std::string_view path) const;

    /// What is known about the key `name`, which is none of the object at `path`, or null.
    const ForeignKey* find_foreign(std::string_view path, std::string_view name) const;

   private:
    std::vector<ObjectShape> shapes_;
    std::vector<ForeignKey> foreign_;
};

/// Of the files that `millrace run` simulates.
const Vocabulary& scenario_vocabulary();

/// Of the files that `millrace learn` trains a model from.
const Vocabulary& learn_vocabulary();

/// Metric keys that `published` may name.
std::span<const std::string_view> metric_keys();

}  // namespace millrace
