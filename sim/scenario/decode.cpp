#include "sim/scenario/decode.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/scenario/calibration.h"
#include "sim/scenario/consistency.h"
#include "sim/scenario/decode_laws.h"
#include "sim/scenario/decode_learner.h"
#include "sim/scenario/decode_measured.h"
#include "sim/scenario/defaults.h"
#include "sim/scenario/input_file.h"
#include "sim/scenario/json_document.h"
#include "sim/scenario/learn_file.h"
#include "sim/scenario/object_reader.h"

namespace millrace {
namespace {

/// Updates that a run may have; more is a typing error.
constexpr std::int64_t most_updates = largest_count;
static_assert(most_updates < std::numeric_limits<std::int32_t>::max(), "policy versions are 32-bit numbers");
constexpr std::int64_t most_gpus = 1'000'000;

class ScenarioDecoder {
   public:
    ScenarioDecoder(const JsonNode& root, const Vocabulary& vocabulary, Diagnostics& diagnostics)
        : root_(root), vocabulary_(vocabulary), diagnostics_(diagnostics) {}

    Scenario decode() {
        const ObjectReader reader(root_, "", "", diagnostics_);
        Scenario scenario;
        if (root_.kind != JsonNode::Kind::object) {
            return scenario;
        }
        static_cast<void>(reader.text("$schema"));
        scenario.name = reader.text("name");
        if (reader.find("name") != nullptr && scenario.name.empty() && diagnostics_.clean("name")) {
            reader.report("name", "expected a name, found an empty string");
        }
        scenario.description = reader.text("description");
        scenario.seed = static_cast<std::uint64_t>(reader.whole("seed", 0, largest_json_integer));
        scenario.replications = reader.whole("replications", 1, 1'000'000);
        read_horizon(scenario.horizon);
        read_measured(scenario);
        read_store(scenario.pipeline.store);
        read_admission(scenario.pipeline.admission);
        if (const JsonNode* learner = root_.find("learner")) {
            scenario.learner = read_learner(*learner, scenario_vocabulary(), diagnostics_);
        }
        read_published(scenario.published);
        return scenario;
    }

    /// What a calibration has, too.
    void read_measured(Scenario& scenario) {
        read_workers(scenario.pipeline.workers);
        read_groups(scenario.pipeline.groups);
        read_reward(scenario.pipeline.reward);
        read_trainers(scenario.pipeline.trainers);
        read_weight_sync(scenario.pipeline.weight_sync);
        if (const JsonNode* noise = root_.find("noise")) {
            scenario.pipeline.noise = read_noise(*noise, diagnostics_);
        }
        if (const JsonNode* price = root_.find("price")) {
            scenario.price = PriceConfig{object(*price, "price").real("usd_per_gpu_hour", any_nonnegative)};
        }
    }

   private:
    ObjectReader object(const JsonNode& node, const std::string& path) {
        return ObjectReader(node, path, path, diagnostics_, vocabulary_);
    }

    void read_horizon(HorizonConfig& horizon) {
        const JsonNode* node = root_.find("horizon");
        if (node == nullptr) {
            return;
        }
        const ObjectReader reader = object(*node, "horizon");
        horizon.updates = reader.whole("updates", 1, most_updates);
        horizon.warmup_updates = whole_or_word(reader, "warmup_updates", 0, "auto");
        if (reader.find("units") != nullptr) {
            horizon.units = reader.real("units", any_positive);
        }
    }

    /// A count, or none for the word that stands for "no fixed count".
    std::optional<std::int64_t> whole_or_word(const ObjectReader& reader, std::string_view key, std::int64_t low,
                                              const std::string& word) {
        const JsonNode* node = reader.find(key);
        if (node == nullptr) {
            return std::nullopt;
        }
        if (node->kind == JsonNode::Kind::string) {
            if (node->string != word) {
                const std::string_view known[] = {word};
                reader.report(key,
                              "expected a whole number of at least " + std::to_string(low) + " or \"" + word +
                                  "\", found " + describe_value(*node),
                              "", nearest_name(node->string, known));
            }
            return std::nullopt;
        }
        if (node->kind != JsonNode::Kind::integer && node->kind != JsonNode::Kind::real) {
            report_mismatch(*node, reader.path_to(key),
                            "a whole number of at least " + std::to_string(low) + " or \"" + word + "\"", diagnostics_);
            return std::nullopt;
        }
        return reader.whole(key, low);
    }

    void read_workers(WorkersConfig& workers) {
        const JsonNode* node = root_.find("workers");
        if (node == nullptr) {
            return;
        }
        const ObjectReader reader = object(*node, "workers");
        workers.count = reader.whole("count", 1, most_gpus);
        workers.slots = reader.whole("slots", 1, 1'000'000);
        if (const JsonNode* service = reader.find("service")) {
            workers.service = read_worker_service(*service, diagnostics_);
        }
        if (node->kind == JsonNode::Kind::object && reader.find("length") == nullptr) {
            // Every other scenario has got its default by now.
            const bool steps = std::holds_alternative<StepService>(workers.service);
            reader.report("length", std::string("missing: the service law of the ") + (steps ? "workers" : "trainers") +
                                        " counts tokens, so it needs the length of a response");
        }
        workers.length = read_law(reader, "length", tokens_law, diagnostics_);
        workers.prompt_length = read_law(reader, "prompt_length", tokens_law, diagnostics_);
    }

    void read_groups(GroupsConfig& groups) {
        const JsonNode* node = root_.find("groups");
        groups.size = object(*node, "groups").whole("size", 1, 1'000'000);
    }

    void read_reward(std::optional<RewardConfig>& reward) {
        const JsonNode* node = root_.find("reward");
        if (node == nullptr) {
            return;
        }
        const ObjectReader reader = object(*node, "reward");
        reward.emplace();
        reward->latency_s = read_law(reader, "latency_s", latency_law, diagnostics_);
        reward->servers = whole_or_word(reader, "servers", 1, "unlimited");
        if (reader.find("correct_probability") != nullptr) {
            reward->correct_probability = reader.real("correct_probability", {0.0, 1.0});
        }
    }

    void read_trainers(TrainersConfig& trainers) {
        const JsonNode* node = root_.find("trainers");
        if (node == nullptr) {
            return;
        }
        const ObjectReader reader = object(*node, "trainers");
        trainers.count = reader.whole("count", 1, most_gpus);
        trainers.batch = reader.whole("batch", 1);
        trainers.fresh_per_update = reader.whole("fresh_per_update", 0);
        if (const JsonNode* service = reader.find("service")) {
            trainers.service = read_trainer_service(*service, diagnostics_);
        }
    }

    void read_store(StoreConfig& store) {
        const JsonNode* node = root_.find("store");
        if (node == nullptr) {
            return;
        }
        const ObjectReader reader = ObjectReader::with_kind(*node, "store", "store", diagnostics_);
        if (reader.kind() == "transfer_queue") {
            TransferQueueConfig queue;
            queue.capacity = reader.whole("capacity", 1);
            queue.order = reader.choice<QueueOrder>(
                "order",
                {{"fifo", QueueOrder::fifo}, {"lifo", QueueOrder::lifo}, {"as_started", QueueOrder::as_started}});
            queue.overflow = reader.choice<Overflow>(
                "overflow", {{"block", Overflow::block}, {"drop_oldest", Overflow::drop_oldest}});
            store = queue;
        } else if (reader.kind() == "replay_buffer") {
            ReplayBufferConfig buffer;
            buffer.capacity = reader.whole("capacity", 1);
            buffer.sampling =
                reader.choice<Sampling>("sampling",
                                        {{"uniform_with_replacement", Sampling::uniform_with_replacement},
                                         {"uniform_without_replacement", Sampling::uniform_without_replacement},
                                         {"never_used_first", Sampling::never_used_first}},
                                        {"recency_weighted"});
            buffer.sharded = reader.boolean("sharded");
            if (const JsonNode* eviction = reader.find("eviction")) {
                const ObjectReader rule =
                    ObjectReader::with_kind(*eviction, "store.eviction", "store.eviction", diagnostics_);
                if (rule.kind() == "positive_bias") {
                    buffer.positive_bias_delta = rule.real("delta", {0.0, 1.0, false, true});
                }
            }
            store = buffer;
        }
    }

    void read_weight_sync(WeightSyncConfig& sync) {
        const ObjectReader reader = object(*root_.find("weight_sync"), "weight_sync");
        sync.every = reader.whole("every", 1);
        sync.transfer_s = read_law(reader, "transfer_s", latency_law, diagnostics_);
        sync.in_flight = reader.choice<InFlight>(
            "in_flight", {{"between_rollouts", InFlight::between_rollouts}, {"in_place", InFlight::in_place}},
            {"drain", "abort", "retract"});
        sync.trainers_wait = reader.boolean("trainers_wait");
    }

    void read_admission(std::optional<AdmissionConfig>& admission) {
        const ObjectReader reader =
            ObjectReader::with_kind(*root_.find("admission"), "admission", "admission", diagnostics_);
        if (reader.kind() == "token_bucket") {
            admission.emplace();
            admission->steps_ahead = reader.whole("steps_ahead", 0, 1'000'000);
            admission->rollouts_per_update = reader.whole("rollouts_per_update", 1);
        }
    }

    void read_published(std::vector<Published>& published) {
        const JsonNode* node = root_.find("published");
        if (node->kind != JsonNode::Kind::array) {
            report_mismatch(*node, "published", "a list of published numbers", diagnostics_);
            return;
        }
        for (const JsonNode& element : node->children) {
            const std::string path = "published." + std::to_string(published.size());
            const ObjectReader reader(element, path, "published", diagnostics_);
            Published number;
            number.metric = reader.text("metric");
            const std::span<const std::string_view> keys = metric_keys();
            if (!number.metric.empty() && std::find(keys.begin(), keys.end(), number.metric) == keys.end()) {
                reader.report("metric", "no metric is called \"" + number.metric + "\"", "",
                              nearest_name(number.metric, keys));
            } else if (number.metric.empty() && reader.find("metric") != nullptr) {
                reader.report("metric", "expected the key of a metric");
            }
            number.value = reader.real("value", {-std::numeric_limits<double>::max()});
            number.source = reader.text("source");
            published.push_back(std::move(number));
        }
    }

    const JsonNode& root_;
    const Vocabulary& vocabulary_;
    Diagnostics& diagnostics_;
};

/// A kind of file that is easily taken for a scenario.
struct OtherKind {
    bool (*is_one)(const JsonNode& root);
    std::string_view key;  ///< by which one knows it
    const char* message;
    const char* hint;
};
constexpr std::array other_kinds = {
    OtherKind{is_learn_file, "learner", "a learner without a pipeline around it",
              R"("millrace learn" trains it; a scenario has "workers", "trainers" and a "store" too)"},
    OtherKind{is_sweep_file, "families", "a sweep over scenarios, not a scenario", R"("millrace sweep" runs it)"},
    OtherKind{is_calibration, "sources", "this is a calibration, not a scenario",
              R"("millrace plan" makes scenarios from it)"}};

/// Throws at once: everything that such a file lacks of a scenario would only hide what it is.
void refuse_other_kinds(const JsonNode& root, Diagnostics& diagnostics) {
    for (const OtherKind& kind : other_kinds) {
        if (kind.is_one(root)) {
            const JsonNode* node = root.find(kind.key);
            diagnostics.report(node != nullptr ? node->key_place : root.value_place, std::string(kind.key),
                               kind.message, kind.hint);
            diagnostics.throw_if_any();
        }
    }
}

}  // namespace

void read_measured(const JsonNode& root, const Vocabulary& vocabulary, Scenario& scenario, Diagnostics& diagnostics) {
    ScenarioDecoder(root, vocabulary, diagnostics).read_measured(scenario);
}

Scenario decode_scenario(std::string_view text, const std::string& file_name,
                         const std::vector<std::string>& overrides) {
    Diagnostics diagnostics = diagnostics_of(text, file_name, overrides);
    JsonNode root = parse_input(diagnostics, scenario_vocabulary());
    refuse_other_kinds(root, diagnostics);
    if (root.kind == JsonNode::Kind::object) {
        fill_scenario_defaults(root);
    }
    Scenario scenario = ScenarioDecoder(root, scenario_vocabulary(), diagnostics).decode();
    check_consistency(root, scenario, diagnostics);
    diagnostics.throw_if_any();
    scenario.resolved_json = resolved_json(std::move(root));
    return scenario;
}

Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides) {
    return decode_scenario(read_input_file(path), path, overrides);
}

}  // namespace millrace
