#include "sim/scenario/learn_file.h"

#include <utility>

#include "sim/scenario/decode_learner.h"
#include "sim/scenario/defaults.h"
#include "sim/scenario/input_file.h"
#include "sim/scenario/object_reader.h"

namespace millrace {
namespace {

constexpr std::int64_t most_replications = 4096;
constexpr std::int64_t most_updates = 10'000'000;

class LearnFileDecoder {
   public:
    LearnFileDecoder(const JsonNode& root, Diagnostics& diagnostics) : root_(root), diagnostics_(diagnostics) {}

    LearnFile decode() {
        const ObjectReader reader(root_, "", "", diagnostics_, learn_vocabulary());
        LearnFile file;
        if (root_.kind != JsonNode::Kind::object) {
            return file;
        }
        static_cast<void>(reader.text("$schema"));
        file.name = reader.text("name");
        if (reader.find("name") != nullptr && file.name.empty() && diagnostics_.clean("name")) {
            reader.report("name", "expected a name, found an empty string");
        }
        file.description = reader.text("description");
        file.seed = static_cast<std::uint64_t>(reader.whole("seed", 0, largest_json_integer));
        file.replications = reader.whole("replications", 1, most_replications);
        if (const JsonNode* horizon = root_.find("horizon")) {
            file.updates = object(*horizon, "horizon").whole("updates", 1, most_updates);
        }
        // The objective compares a rollout with the others of its group.
        const ObjectReader groups = object(*root_.find("groups"), "groups");
        file.group_size = groups.whole("size", 2, most_sequences_of_a_learner);
        const ObjectReader trainers = object(*root_.find("trainers"), "trainers");
        file.batch = trainers.whole("batch", 2, most_sequences_of_a_learner);
        if (file.batch % file.group_size != 0 && diagnostics_.clean("groups") && diagnostics_.clean("trainers")) {
            const std::int64_t below = file.batch / file.group_size * file.group_size;
            trainers.report("batch",
                            "expected whole groups: a multiple of groups.size = " + std::to_string(file.group_size) +
                                ", found " + std::to_string(file.batch),
                            (below > 0 ? std::to_string(below) + " and " : "") +
                                std::to_string(below + file.group_size) + (below > 0 ? " are" : " is") +
                                " the nearest");
        }
        if (const JsonNode* learner = root_.find("learner")) {
            file.learner = read_learner(*learner, learn_vocabulary(), diagnostics_);
        }
        return file;
    }

   private:
    ObjectReader object(const JsonNode& node, const std::string& path) {
        return ObjectReader(node, path, path, diagnostics_, learn_vocabulary());
    }

    const JsonNode& root_;
    Diagnostics& diagnostics_;
};

}  // namespace

LearnFile decode_learn_file(std::string_view text, const std::string& file_name,
                            const std::vector<std::string>& overrides) {
    Diagnostics diagnostics = diagnostics_of(text, file_name, overrides);
    JsonNode root = parse_input(diagnostics, learn_vocabulary());
    if (root.kind == JsonNode::Kind::object) {
        fill_learn_defaults(root);
    }
    LearnFile file = LearnFileDecoder(root, diagnostics).decode();
    diagnostics.throw_if_any();
    file.resolved_json = resolved_json(std::move(root));
    return file;
}

LearnFile load_learn_file(const std::string& path, const std::vector<std::string>& overrides) {
    return decode_learn_file(read_input_file(path), path, overrides);
}

bool is_learn_file(std::string_view text) {
    Diagnostics ignored = diagnostics_of(text, "", {});
    JsonNode root;
    return parse_json(root, 0, 0, ignored) && is_learn_file(root);
}

bool is_learn_file(const JsonNode& root) {
    return root.find("learner") != nullptr && root.find("workers") == nullptr && root.find("store") == nullptr;
}

}  // namespace millrace
