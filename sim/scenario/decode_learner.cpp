#include "sim/scenario/decode_learner.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "sim/scenario/object_reader.h"

namespace millrace {
namespace {

// Far beyond any toy, and small enough that a typing error does not exhaust the memory.
constexpr std::int64_t most_layers_of_a_model = 16;
constexpr std::int64_t widest_model = 1024;
constexpr std::int64_t widest_mlp = 4096;
constexpr std::int64_t longest_context = 1024;
constexpr std::int64_t most_updates_of_a_learner = 10'000'000;
constexpr std::int64_t most_replicas = 1024;
constexpr std::int64_t width_step = 8;  // numbers that a vector register holds
constexpr std::int64_t fewest_samples = 16;

constexpr double highest_clip = 1000.0;
constexpr double longest_gradient = 1e6;
constexpr double unlimited = std::numeric_limits<double>::infinity();
constexpr RealRange rate{0.0, 1.0, true, false};
constexpr RealRange below_one{0.0, 1.0, false, true};
constexpr RealRange fraction{0.0, 1.0};

class LearnerDecoder {
   public:
    LearnerDecoder(const JsonNode& node, const Vocabulary& vocabulary, Diagnostics& diagnostics)
        : diagnostics_(diagnostics),
          vocabulary_(vocabulary),
          in_scenario_(&vocabulary == &scenario_vocabulary()),
          learner_(node, "learner", "learner", diagnostics, vocabulary),
          is_object_(node.kind == JsonNode::Kind::object) {}

    LearnerSettings decode() {
        LearnerSettings settings;
        if (!is_object_) {
            return settings;
        }
        if (const JsonNode* task = learner_.find("task")) {
            read_task(with_kind(*task, "task"), settings.task);
        }
        read_model(object("model"), settings.task, settings.model);
        read_warm_start(with_kind(*learner_.find("warm_start"), "warm_start"), settings.warm_start);
        read_objective(with_kind(*learner_.find("objective"), "objective"), settings.objective);
        read_optimizer(object("optimizer"), settings.optimizer);
        read_evaluation(object("evaluation"), settings.evaluation);
        if (in_scenario_) {
            settings.replicas = learner_.whole("replicas", 1, most_replicas);
            settings.target_pass_at_1 = learner_.real("target_pass_at_1", {0.0, 1.0, true, true});
        }
        return settings;
    }

   private:
    /// Objects other than the task are always there: they have a default.
    ObjectReader object(std::string_view key) {
        const std::string path = learner_.path_to(key);
        return ObjectReader(*learner_.find(key), path, path, diagnostics_, vocabulary_);
    }

    ObjectReader with_kind(const JsonNode& node, std::string_view key) {
        const std::string path = learner_.path_to(key);
        return ObjectReader::with_kind(node, path, path, diagnostics_, {}, vocabulary_);
    }

    void read_task(const ObjectReader& reader, TaskSettings& task) {
        if (reader.kind() == "countdown") {
            task = {TaskKind::countdown, reader.whole("numbers", 3, 4)};
        } else if (reader.kind() == "addition") {
            task = {TaskKind::addition, reader.whole("digits", 1, 16)};
        } else if (reader.kind() == "sort") {
            task = {TaskKind::sort, reader.whole("digits", 2, 32)};
        }
    }

    void read_model(const ObjectReader& reader, const TaskSettings& task, ModelSettings& model) {
        model.layers = reader.whole("layers", 1, most_layers_of_a_model);
        model.width = multiple_of_step(reader, "width", widest_model);
        model.heads = reader.whole("heads", 1, model.width);
        model.mlp_width = multiple_of_step(reader, "mlp_width", widest_mlp);
        if (model.width % model.heads != 0 && well_read({"width", "heads"}, reader)) {
            reader.report("heads", "expected a number that divides width = " + std::to_string(model.width) +
                                       ", found " + std::to_string(model.heads));
        }
        if (reader.find("context") == nullptr) {
            return;
        }
        model.context = reader.whole("context", 1, longest_context);
        const std::int64_t needed = task_tokens(task);
        if (*model.context < needed && diagnostics_.clean("learner.task") && well_read({"context"}, reader)) {
            reader.report("context",
                          "expected at least " + std::to_string(needed) +
                              ", for so many tokens a prompt of the task and its answer take, found " +
                              std::to_string(*model.context),
                          "without this key the context is as long as the task needs");
        }
    }

    std::int64_t multiple_of_step(const ObjectReader& reader, std::string_view key, std::int64_t high) {
        const std::int64_t value = reader.whole(key, width_step, high);
        if (value % width_step != 0) {
            const std::int64_t below = value / width_step * width_step;
            reader.report(key,
                          "expected a multiple of " + std::to_string(width_step) + ", found " + std::to_string(value),
                          std::to_string(below) + " and " + std::to_string(below + width_step) + " are the nearest");
        }
        return value;
    }

    void read_warm_start(const ObjectReader& reader, WarmStartSettings& warm_start) {
        if (reader.kind() == "checkpoint") {
            warm_start.checkpoint = reader.text("path");
            if (warm_start.checkpoint->empty() && diagnostics_.clean(reader.path_to("path"))) {
                reader.report("path", "expected the path of a checkpoint, found an empty string");
            }
            if (reader.find("hash") != nullptr) {
                warm_start.checkpoint_hash = hash(reader);
            }
        } else if (reader.kind() == "supervised") {
            warm_start.seed = static_cast<std::uint64_t>(reader.whole("seed", 0, largest_json_integer));
            warm_start.updates = reader.whole("updates", 1, most_updates_of_a_learner);
            warm_start.batch = reader.whole("batch", 1, most_sequences_of_a_learner);
            warm_start.annealed_fraction = reader.real("annealed_fraction", fraction);
            read_optimizer(reader, warm_start.optimizer);
        }
    }

    std::string hash(const ObjectReader& reader) {
        std::string digits = reader.text("hash");
        const bool fits = digits.size() == 16 && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
        if (!fits && diagnostics_.clean(reader.path_to("hash"))) {
            reader.report("hash", "expected 16 digits 0-9 and a-f, found " + describe_value(*reader.find("hash")),
                          R"("millrace warm-start" prints the hash of what it writes)");
        }
        return digits;
    }

    void read_objective(const ObjectReader& reader, ObjectiveSettings& objective) {
        if (reader.kind() == "asymre") {
            objective.algorithm = Algorithm::asymre;
            objective.shift = reader.real("shift", {-10.0, 10.0});
            return;
        }
        objective.ratio = reader.kind().empty()
                              ? RatioLevel::token
                              : reader.choice<RatioLevel>(
                                    "ratio", {{"token", RatioLevel::token}, {"sequence", RatioLevel::sequence}});
        if (reader.kind() == "reinforce") {
            objective.algorithm = Algorithm::reinforce;
        } else if (reader.kind() == "grpo") {
            read_clip(reader, objective);
        }
    }

    void read_clip(const ObjectReader& reader, ObjectiveSettings& objective) {
        const bool one = reader.find("clip") != nullptr;
        const bool low = reader.find("clip_low") != nullptr;
        const bool high = reader.find("clip_high") != nullptr;
        if (one && (low || high)) {
            reader.report("clip", "expected either this or clip_low and clip_high, found both");
        } else if (!one && low != high) {
            reader.report(low ? "clip_low" : "clip_high",
                          std::string("expected ") + (low ? "clip_high" : "clip_low") + " beside it",
                          "clip alone sets both");
        }
        // Ratios are positive, so nothing lies below 1 - 1; above there is no such bound.
        if (one) {
            objective.clip_low = number_or_none(reader, "clip", 1.0);
            objective.clip_high = objective.clip_low;
        } else {
            objective.clip_low = number_or_none(reader, "clip_low", 1.0);
            objective.clip_high = number_or_none(reader, "clip_high", highest_clip);
        }
    }

    /// A number above 0 and at most `high`, or infinity for the word "none".
    double number_or_none(const ObjectReader& reader, std::string_view key, double high) {
        const JsonNode* node = reader.find(key);
        if (node == nullptr || (node->is_number() && node->real > 0.0 && node->real <= high)) {
            return node == nullptr ? 0.0 : node->real;
        }
        const bool is_word = node->kind == JsonNode::Kind::string;
        if (!is_word || node->string != "none") {
            const std::string_view known[] = {"none"};
            reader.report(key,
                          "expected a number above 0 and at most " + number_text(high) + R"( or "none", found )" +
                              describe_value(*node),
                          "", is_word ? nearest_name(node->string, known) : "");
        }
        return unlimited;
    }

    void read_optimizer(const ObjectReader& reader, OptimizerSettings& optimizer) {
        optimizer.learning_rate = reader.real("learning_rate", rate);
        optimizer.warmup_updates = reader.whole("warmup_updates", 0, most_updates_of_a_learner);
        optimizer.beta1 = reader.real("beta1", below_one);
        optimizer.beta2 = reader.real("beta2", below_one);
        optimizer.epsilon = reader.real("epsilon", {1e-12, 1.0});
        optimizer.weight_decay = reader.real("weight_decay", fraction);
        const double norm = number_or_none(reader, "max_gradient_norm", longest_gradient);
        optimizer.max_gradient_norm = norm == unlimited ? 0.0 : norm;
    }

    void read_evaluation(const ObjectReader& reader, EvaluationSettings& evaluation) {
        if (in_scenario_) {
            evaluation.every_units = reader.real("every_units", any_positive);
        } else {
            evaluation.every_updates = reader.whole("every_updates", 1, most_updates_of_a_learner);
        }
        evaluation.sampled_prompts = reader.whole("sampled_prompts", 1, most_sequences_of_a_learner);
        evaluation.samples =
            reader.whole("samples", fewest_samples, most_sequences_of_a_learner);  // of which pass@16 is estimated
        evaluation.greedy_prompts = reader.whole("greedy_prompts", 1, most_sequences_of_a_learner);
    }

    bool well_read(std::initializer_list<std::string_view> keys, const ObjectReader& reader) const {
        return std::all_of(keys.begin(), keys.end(),
                           [&](std::string_view key) { return diagnostics_.clean(reader.path_to(key)); });
    }

    Diagnostics& diagnostics_;
    const Vocabulary& vocabulary_;
    bool in_scenario_;
    ObjectReader learner_;
    bool is_object_;
};

}  // namespace

LearnerSettings read_learner(const JsonNode& node, const Vocabulary& vocabulary, Diagnostics& diagnostics) {
    return LearnerDecoder(node, vocabulary, diagnostics).decode();
}

std::int64_t task_tokens(const TaskSettings& task) {
    const std::int64_t n = task.size;
    switch (task.kind) {
        case TaskKind::sort:
            return (n + 1) + (n + 1);  // "31=" and "13" with its end
        case TaskKind::countdown:
            return (n + 5) + 2 * n;  // "635,-27=" and "6-3+5" with its end
        case TaskKind::addition:
            break;
    }
    return (2 * n + 2) + (n + 2);  // "95+18=" and "311" with its end
}

}  // namespace millrace
