#include "sim/scenario/defaults.h"

#include <string>
#include <string_view>
#include <utility>

#include "sim/scenario/calibration.h"

namespace millrace {
namespace {

void stand_at(JsonNode& node, Place place) {
    node.key_place = place;
    node.value_place = place;
    for (JsonNode& child : node.children) {
        stand_at(child, place);
    }
}

void add_member(JsonNode& object, std::string_view name, JsonNode member) {
    member.key = name;
    stand_at(member, object.key_place);
    object.children.push_back(std::move(member));
}

JsonNode parse_default(std::string_view json) {
    Diagnostics none("default", std::string(json), {});
    JsonNode node;
    parse_json(node, 0, 0, none);
    none.throw_if_any();
    return node;
}

std::string_view kind_of(const JsonNode* object) {
    const JsonNode* kind = object == nullptr ? nullptr : object->find("kind");
    return kind == nullptr ? std::string_view{} : kind->string;
}

/// The keys that are filled in: all that have a default, or only those that `wanted` takes.
template <typename Wanted>
void fill(JsonNode& root, const Vocabulary& vocabulary, const Wanted& wanted) {
    for (const ObjectShape& shape : vocabulary.shapes()) {
        JsonNode* object = const_cast<JsonNode*>(find_path(std::as_const(root), shape.path));
        if (object == nullptr || object->kind != JsonNode::Kind::object ||
            (!shape.kind.empty() && kind_of(object) != shape.kind)) {
            continue;
        }
        for (const KeyRule& key : shape.keys) {
            if (key.presence == KeyRule::Presence::defaulted && wanted(shape, key) &&
                object->find(key.name) == nullptr) {
                add_member(*object, key.name, parse_default(key.default_json));
            }
        }
    }
}

/// Defaults that depend on another key.
void fill_dependent_scenario_defaults(JsonNode& root) {
    const bool counts_tokens = kind_of(find_path(root, "workers.service")) == "step" ||
                               kind_of(find_path(root, "trainers.service")) == "per_token";
    JsonNode* workers = root.find("workers");
    const bool has_workers = workers != nullptr && workers->kind == JsonNode::Kind::object;
    if (has_workers && workers->find("length") == nullptr && !counts_tokens) {
        add_member(*workers, "length", parse_default("1"));
    }
    JsonNode* admission = root.find("admission");
    const JsonNode* batch = find_path(root, "trainers.batch");
    if (batch != nullptr && kind_of(admission) == "token_bucket" && admission->find("rollouts_per_update") == nullptr) {
        add_member(*admission, "rollouts_per_update", *batch);
    }
}

/// A clip that is stated in none of its ways.
void fill_dependent_learner_defaults(JsonNode& root) {
    JsonNode* objective = const_cast<JsonNode*>(find_path(std::as_const(root), "learner.objective"));
    if (kind_of(objective) == "grpo" && objective->find("clip") == nullptr && objective->find("clip_low") == nullptr &&
        objective->find("clip_high") == nullptr) {
        add_member(*objective, "clip", parse_default("0.2"));
    }
}

}  // namespace

void fill_scenario_defaults(JsonNode& root) {
    // A learner decides which rollouts are correct: a probability beside it is an error, so the resolved form of a
    // scenario must not have one that its author left out.
    const bool learns = root.find("learner") != nullptr;
    fill(root, scenario_vocabulary(), [learns](const ObjectShape& shape, const KeyRule& key) {
        return !(learns && shape.path == "reward" && key.name == "correct_probability");
    });
    fill_dependent_scenario_defaults(root);
    fill_dependent_learner_defaults(root);
}

void fill_learn_defaults(JsonNode& root) {
    fill(root, learn_vocabulary(), [](const ObjectShape&, const KeyRule&) { return true; });
    fill_dependent_learner_defaults(root);
}

void fill_calibration_defaults(JsonNode& root) {
    fill(root, calibration_vocabulary(), [](const ObjectShape&, const KeyRule&) { return true; });
    fill_dependent_scenario_defaults(root);
}

void fill_default_kinds(JsonNode& root, const Vocabulary& vocabulary) {
    // Not in an object that has a kind itself: an override may give it another, with other keys.
    fill(root, vocabulary, [](const ObjectShape& shape, const KeyRule& key) {
        return shape.kind.empty() && key.default_json.starts_with(R"({"kind")");
    });
}

}  // namespace millrace
