#include "sim/scenario/calibration.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/scenario/consistency.h"
#include "sim/scenario/decode_measured.h"
#include "sim/scenario/defaults.h"
#include "sim/scenario/input_file.h"
#include "sim/scenario/object_reader.h"

namespace millrace {
namespace {

constexpr std::int64_t most_updates = 1'000'000'000;

/// Parts of a scenario that are measured, in the order in which they are listed.
constexpr std::array measured_parts =
    std::to_array<std::string_view>({"workers", "groups", "reward", "trainers", "weight_sync", "noise", "price"});

/// Keys within them that are decided.
constexpr std::array decided_keys = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"workers", "count"}, {"trainers", "count"}, {"trainers", "fresh_per_update"}, {"weight_sync", "every"}});

bool is_measured(std::string_view path) {
    const std::string_view part = path.substr(0, path.find('.'));
    return part.starts_with("law") ||
           std::find(measured_parts.begin(), measured_parts.end(), part) != measured_parts.end();
}

bool is_decided(std::string_view path, std::string_view key) {
    return std::find(decided_keys.begin(), decided_keys.end(), std::pair{path, key}) != decided_keys.end();
}

Vocabulary make_vocabulary() {
    constexpr auto required = KeyRule::Presence::required;
    ObjectShape file{"",
                     "",
                     {{"$schema", KeyRule::Presence::optional},
                      {"name", required},
                      {"description", KeyRule::Presence::defaulted, R"("")"},
                      {"sources", required}}};
    std::vector<ObjectShape> shapes;
    for (const ObjectShape& shape : scenario_vocabulary().shapes()) {
        if (shape.path.empty()) {
            for (const KeyRule& key : shape.keys) {
                if (std::find(measured_parts.begin(), measured_parts.end(), key.name) != measured_parts.end()) {
                    file.keys.push_back(key);
                }
            }
            file.keys.push_back({"target", required});
            shapes.push_back(file);
        } else if (is_measured(shape.path)) {
            shapes.push_back(shape);
            std::erase_if(shapes.back().keys, [&](const KeyRule& key) { return is_decided(shape.path, key.name); });
        }
    }
    shapes.push_back({"sources", "", {{"path", required}, {"text", required}, {"where", required}}});
    shapes.push_back({"target", "", {{"on_policy_updates", required}, {"source", required}}});

    constexpr std::string_view hint = R"("millrace plan" chooses it; "millrace run" takes scenarios, which state it)";
    std::vector<ForeignKey> foreign;
    for (const std::string_view key : {"store", "admission", "horizon", "seed", "replications"}) {
        foreign.push_back({"", key, "a calibration has only what is measured, and this is decided", hint});
    }
    for (const auto& [path, key] : decided_keys) {
        foreign.push_back({path, key, "a calibration has only what is measured, and this is decided", hint});
    }
    for (const std::string_view key : {"published", "learner", "faults"}) {
        foreign.push_back({"", key, "a calibration has no place for this"});
    }
    return Vocabulary(std::move(shapes), std::move(foreign));
}

class CalibrationDecoder {
   public:
    CalibrationDecoder(const JsonNode& root, Diagnostics& diagnostics) : root_(root), diagnostics_(diagnostics) {}

    Calibration decode() {
        const ObjectReader reader(root_, "", "", diagnostics_, calibration_vocabulary());
        Calibration calibration;
        if (root_.kind != JsonNode::Kind::object) {
            return calibration;
        }
        static_cast<void>(reader.text("$schema"));
        calibration.name = reader.text("name");
        if (reader.find("name") != nullptr && calibration.name.empty() && diagnostics_.clean("name")) {
            reader.report("name", "expected a name, found an empty string");
        }
        calibration.description = reader.text("description");
        Scenario& measured = calibration.measured;
        measured.name = calibration.name;
        read_measured(root_, calibration_vocabulary(), measured, diagnostics_);
        // A store that fits any batch: what remains to be checked is whether the measured parts fit together.
        measured.pipeline.store = ReplayBufferConfig{measured.pipeline.trainers.batch};
        check_consistency(root_, measured, diagnostics_);
        read_target(calibration.target);
        read_sources(calibration.sources);
        return calibration;
    }

   private:
    void read_target(CalibrationTarget& target) {
        if (const JsonNode* node = root_.find("target")) {
            const ObjectReader reader(*node, "target", "target", diagnostics_, calibration_vocabulary());
            target.on_policy_updates = reader.whole("on_policy_updates", 1, most_updates);
            target.source = stated(reader, "source");
        }
    }

    std::string stated(const ObjectReader& reader, std::string_view key) {
        std::string text = reader.text(key);
        const JsonNode* node = reader.find(key);
        if (node != nullptr && node->kind == JsonNode::Kind::string && text.empty()) {
            reader.report(key, "expected a source, found an empty string",
                          R"(for a number that nobody has measured, write "assumed" and why)");
        }
        return text;
    }

    void read_sources(std::vector<CalibrationSource>& sources) {
        const JsonNode* node = root_.find("sources");
        if (node == nullptr) {
            return;
        }
        if (node->kind != JsonNode::Kind::array) {
            report_mismatch(*node, "sources", "a list of sources", diagnostics_);
            return;
        }
        for (const JsonNode& element : node->children) {
            const std::string path = "sources." + std::to_string(sources.size());
            const ObjectReader reader(element, path, "sources", diagnostics_, calibration_vocabulary());
            sources.push_back({reader.text("path"), stated(reader, "text"), stated(reader, "where")});
            if (reader.find("path") != nullptr && diagnostics_.clean(path + ".path")) {
                check_path(reader, sources.back().path);
            }
        }
        if (!diagnostics_.clean("sources")) {
            return;  // a slip in a source is not a number without one
        }
        for (const std::string_view part : measured_parts) {
            if (const JsonNode* measured = root_.find(part)) {
                require_sources(*measured, std::string(part), sources);
            }
        }
    }

    /// A source of nothing is a slip in its path.
    void check_path(const ObjectReader& reader, const std::string& path) {
        const std::string_view part = std::string_view(path).substr(0, path.find('.'));
        const bool measured = std::find(measured_parts.begin(), measured_parts.end(), part) != measured_parts.end();
        if (measured && (find_path(root_, path) != nullptr || !diagnostics_.clean(path))) {
            return;  // what is missing has been reported
        }
        std::vector<std::string> paths;
        for (const std::string_view known : measured_parts) {
            if (const JsonNode* node = root_.find(known)) {
                collect_paths(*node, std::string(known), paths);
            }
        }
        const std::vector<std::string_view> names(paths.begin(), paths.end());
        reader.report("path", "nothing measured stands at \"" + path + "\" in this file", "",
                      nearest_name(path, names));
    }

    static void collect_paths(const JsonNode& node, const std::string& path, std::vector<std::string>& paths) {
        paths.push_back(path);
        if (node.kind == JsonNode::Kind::object) {
            for (const JsonNode& member : node.children) {
                collect_paths(member, path + "." + member.key, paths);
            }
        }
    }

    /// Reports the numbers in or below `node` that no source covers. What is the default anyway needs none.
    void require_sources(const JsonNode& node, const std::string& path, const std::vector<CalibrationSource>& sources) {
        if (std::any_of(sources.begin(), sources.end(),
                        [&](const CalibrationSource& source) { return source.path == path; })) {
            return;
        }
        const bool is_list_of_numbers =
            node.kind == JsonNode::Kind::array &&
            std::any_of(node.children.begin(), node.children.end(),
                        [](const JsonNode& child) { return child.is_number() || child.kind == JsonNode::Kind::array; });
        if (node.is_number() || is_list_of_numbers) {
            if (node.value_place.source == 0 && diagnostics_.clean(path)) {
                diagnostics_.report(node.value_place, path,
                                    node.is_number() ? "this number has no source" : "these numbers have no source",
                                    R"(add {"path": ")" + path + R"(", "text": ..., "where": ...} to "sources")");
            }
            return;
        }
        std::size_t index = 0;
        for (const JsonNode& child : node.children) {
            const bool is_list = node.kind == JsonNode::Kind::array;
            if (is_list || !is_default(path, node, child)) {
                require_sources(child, path + "." + (is_list ? std::to_string(index) : child.key), sources);
            }
            ++index;
        }
    }

    static bool is_default(const std::string& path, const JsonNode& object, const JsonNode& member) {
        const JsonNode* kind = object.find("kind");
        const ObjectShape* shape = calibration_vocabulary().find_shape(path, kind == nullptr ? "" : kind->string);
        if (shape == nullptr) {
            return false;
        }
        const auto rule = std::find_if(shape->keys.begin(), shape->keys.end(),
                                       [&](const KeyRule& key) { return key.name == member.key; });
        const std::string_view value = path == "workers" && member.key == "length" ? "1"  // fill_calibration_defaults
                                       : rule == shape->keys.end()                 ? ""
                                                                                   : rule->default_json;
        return canonical_json(member) == value;
    }

    const JsonNode& root_;
    Diagnostics& diagnostics_;
};

}  // namespace

const Vocabulary& calibration_vocabulary() {
    static const Vocabulary vocabulary = make_vocabulary();
    return vocabulary;
}

Calibration decode_calibration(std::string_view text, const std::string& file_name,
                               const std::vector<std::string>& overrides) {
    Diagnostics diagnostics = diagnostics_of(text, file_name, overrides);
    JsonNode root = parse_input(diagnostics, calibration_vocabulary());
    if (root.kind == JsonNode::Kind::object && root.find("store") != nullptr && root.find("sources") == nullptr) {
        // Everything that it lacks would only hide this.
        diagnostics.report(root.find("store")->key_place, "store", "this is a scenario, not a calibration",
                           R"("millrace run" simulates it; a calibration has what is measured, with "sources")");
        diagnostics.throw_if_any();
    }
    if (root.kind == JsonNode::Kind::object) {
        fill_calibration_defaults(root);
    }
    Calibration calibration = CalibrationDecoder(root, diagnostics).decode();
    diagnostics.throw_if_any();
    calibration.resolved_json = resolved_json(std::move(root));
    return calibration;
}

Calibration load_calibration(const std::string& path, const std::vector<std::string>& overrides) {
    return decode_calibration(read_input_file(path), path, overrides);
}

bool is_calibration(std::string_view text) {
    Diagnostics ignored = diagnostics_of(text, "", {});
    JsonNode root;
    return parse_json(root, 0, 0, ignored) && is_calibration(root);
}

bool is_calibration(const JsonNode& root) {
    return root.find("sources") != nullptr && root.find("store") == nullptr;
}

}  // namespace millrace
