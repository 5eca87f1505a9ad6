#include "sim/scenario/decode.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "sim/pipeline/pipeline.h"
#include "sim/run/replications.h"
#include "sim/scenario/vocabulary.h"
#include "tests/scenario/corpus.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using corpus::json_files;
using corpus::read;
using corpus::source_dir;

const fs::path folder = source_dir / "tests/scenario/corpus";

std::vector<fs::path> good_and_shipped() {
    std::vector<fs::path> files = json_files(folder / "good");
    CHECK(files.size() >= 15);
    const std::vector<fs::path> paper = json_files(source_dir / "scenarios/paper");
    CHECK(paper.size() >= 12);
    files.insert(files.end(), paper.begin(), paper.end());
    files.push_back(source_dir / "scenarios/quickstart.json");
    const std::vector<fs::path> learning = corpus::shipped_to_learn(corpus::FileKind::scenario);
    CHECK(learning.size() >= 2);
    files.insert(files.end(), learning.begin(), learning.end());
    return files;
}

std::vector<ScenarioProblem> problems_of(const std::string& text) {
    return corpus::problems_of([&] { decode_scenario(text, "test.json", {}); });
}

// ---- the corpus ---------------------------------------------------------------------------------------------------

TEST_CASE("every malformed scenario is rejected with the right place, key and suggestion") {
    corpus::check_bad_files(folder, 45, [](const std::string& path) { load_scenario(path, {}); });
}

TEST_CASE("every good and every shipped scenario decodes, and its resolved form decodes to the same") {
    for (const fs::path& file : good_and_shipped()) {
        CAPTURE(file.string());
        const Scenario scenario = load_scenario(file.string(), {});
        const Scenario again = decode_scenario(scenario.resolved_json, "resolved.json", {});
        CHECK(again.resolved_json == scenario.resolved_json);
        CHECK(again.name == scenario.name);
        CHECK(again.pipeline.workers.length.describe() == scenario.pipeline.workers.length.describe());
        CHECK(again.learner.has_value() == scenario.learner.has_value());
        CHECK(again.pipeline.store.index() == scenario.pipeline.store.index());
        CHECK(scenario.resolved_json.find('\n') == std::string::npos);
        CHECK(scenario.resolved_json.find("$schema") == std::string::npos);
    }
}

TEST_CASE("a good scenario that loses a required key or gains an unknown one is rejected") {
    const int mutations = corpus::check_mutations(
        folder, good_and_shipped(), [](const std::string& text) { decode_scenario(text, "test.json", {}); });
    CHECK(mutations > 500);
}

// ---- the schema says the same as the decoder ----------------------------------------------------------------------

/// The part of the schema that describes the object of that path and kind: where its properties stand.
const nlohmann::json& schema_of(const nlohmann::json& schema, const ObjectShape& shape) {
    if (shape.path == "law.component") {
        return corpus::schema_of_kind(schema.at("definitions").at("law").at("else"), "mixture")
            .at("properties")
            .at("components")
            .at("items");
    }
    const nlohmann::json* node = &schema;
    if (shape.path == "law") {
        node = &schema.at("definitions").at("law").at("else");
    } else {
        std::istringstream steps{std::string(shape.path)};
        for (std::string step; std::getline(steps, step, '.');) {
            const nlohmann::json* container = node;
            if (!container->at("properties").contains(step)) {
                container = &corpus::schema_of_kind(*node, "replay_buffer");  // the only kind with an object of its own
            }
            node = &container->at("properties").at(step);
        }
        node = node->contains("items") ? &node->at("items") : node;
    }
    return shape.kind.empty() ? *node : corpus::schema_of_kind(*node, shape.kind);
}

TEST_CASE("schema and decoder have the same keys, required keys and defaults") {
    const nlohmann::json schema = nlohmann::json::parse(read(source_dir / "scenarios/schema/scenario.schema.json"));
    for (const ObjectShape& shape : scenario_vocabulary().shapes()) {
        corpus::check_same_keys(schema_of(schema, shape), shape, {"length", "clip"});  // which depend on other keys
    }
    const nlohmann::json& metrics =
        schema.at("properties").at("published").at("items").at("properties").at("metric").at("enum");
    CHECK(metrics.get<std::set<std::string>>() == std::set<std::string>(metric_keys().begin(), metric_keys().end()));
}

TEST_CASE("published may name every metric that a run prints, and every other belongs to a later version") {
    std::set<std::string> printed;
    for (const char* file : {"good/everything.json", "good/queue_lifo_drop.json"}) {
        Scenario scenario = load_scenario((folder / file).string(), {"replications=2", "horizon={\"updates\": 40}"});
        for (const auto& [key, estimate] : run_replications(scenario, {}).metrics) {
            printed.insert(key);
        }
    }
    std::set<std::string> known;
    for (const std::string_view key : metric_keys()) {
        if (!key.starts_with("learner/") && !key.starts_with("updates/")) {  // those of runs with a learner
            known.emplace(key);
        }
    }
    CHECK(printed == known);
}

// ---- what runs ----------------------------------------------------------------------------------------------------

TEST_CASE("every good scenario runs") {
    for (const fs::path& file : json_files(folder / "good")) {
        CAPTURE(file.filename().string());
        const Scenario scenario =
            load_scenario(file.string(), {"replications=1", "horizon={\"updates\": 200, \"warmup_updates\": 50}"});
        const RunResult result = run_replications(scenario, {});
        for (const auto& [key, estimate] : result.metrics) {
            CAPTURE(key);
            CHECK(std::isfinite(estimate.mean));
        }
    }
}

struct Flow {
    StoreConfig store;
    std::string store_json;
    std::int64_t batch, group, steps_ahead, per_update, fresh;

    bool decodes() const {
        static const std::string minimal = read(folder / "good/minimal.json");
        const auto set = [](const std::string& key, std::int64_t value) { return key + "=" + std::to_string(value); };
        const std::vector<std::string> overrides = {"store=" + store_json,
                                                    set("trainers.batch", batch),
                                                    set("groups.size", group),
                                                    set("trainers.fresh_per_update", fresh),
                                                    "admission.kind=token_bucket",
                                                    set("admission.steps_ahead", steps_ahead),
                                                    set("admission.rollouts_per_update", per_update)};
        try {
            decode_scenario(minimal, "flow.json", overrides);
            return true;
        } catch (const ScenarioError&) {
            return false;
        }
    }

    bool runs(double update_s) const {
        PipelineConfig config;
        config.workers.count = 2;
        config.workers.slots = 5;
        config.workers.service = FirstOrderService{Distribution::exponential(1.0)};
        config.groups.size = group;
        config.trainers.batch = batch;
        config.trainers.fresh_per_update = fresh;
        config.trainers.service = FixedTrainerService{Distribution::exponential(update_s)};
        config.store = store;
        config.admission = AdmissionConfig{steps_ahead, per_update};
        try {
            return Pipeline(config, 1, 0).run(150);
        } catch (const PipelineStuck&) {
            return false;
        }
    }
};

TEST_CASE("under admission, what the decoder accepts runs and what it rejects stops") {
    const std::pair<StoreConfig, std::string> stores[] = {
        {ReplayBufferConfig{.capacity = 12}, R"({"kind": "replay_buffer", "capacity": 12})"},
        {TransferQueueConfig{.capacity = 20}, R"({"kind": "transfer_queue", "capacity": 20})"},
        {TransferQueueConfig{.capacity = 11, .overflow = Overflow::drop_oldest},
         R"({"kind": "transfer_queue", "capacity": 11, "overflow": "drop_oldest"})"}};
    int accepted = 0;
    int rejected = 0;
    for (const auto& [store, json] : stores) {
        const bool is_queue = std::holds_alternative<TransferQueueConfig>(store);
        for (const std::int64_t batch : {4, 8, 9}) {
            for (const std::int64_t group : {1, 3, 4, 6, 10}) {
                for (const std::int64_t steps_ahead : {0, 1, 2}) {
                    for (const std::int64_t per_update :
                         is_queue ? std::vector{batch} : std::vector<std::int64_t>{2, 7, 8, 12}) {
                        for (const std::int64_t fresh : {0, 1, 4, 7, 8, 13}) {
                            const Flow flow{store, json, batch, group, steps_ahead, per_update, fresh};
                            const bool decodes = flow.decodes();
                            INFO(json << " B " << batch << " G " << group << " K " << steps_ahead << " R " << per_update
                                      << " f " << fresh);
                            CHECK(flow.runs(0.01) == decodes);
                            CHECK(flow.runs(20.0) == decodes);
                            ++(decodes ? accepted : rejected);
                        }
                    }
                }
            }
        }
    }
    CHECK(accepted > 300);
    CHECK(rejected > 300);
}

// ---- what the values become ---------------------------------------------------------------------------------------

TEST_CASE("every key of a scenario arrives where it belongs") {
    const Scenario scenario = load_scenario((folder / "good/everything.json").string(), {});
    CHECK(scenario.name == "everything");
    CHECK(scenario.description == "Every optional key that a buffered pipeline has.");
    CHECK(scenario.seed == 9007199254740992ULL);
    CHECK(scenario.replications == 3);
    CHECK(scenario.horizon.updates == 500);
    CHECK(scenario.horizon.warmup_updates == 100);
    CHECK(scenario.price->usd_per_gpu_hour == 2.5);
    REQUIRE(scenario.published.size() == 1);
    CHECK(scenario.published[0].metric == "replay/mean");
    CHECK(scenario.published[0].value == 1.5);
    CHECK(scenario.published[0].source == "nowhere");

    const PipelineConfig& pipeline = scenario.pipeline;
    CHECK(pipeline.workers.count == 5);
    CHECK(pipeline.workers.slots == 16);
    const StepService& step = std::get<StepService>(pipeline.workers.service);
    CHECK(step.law.base_s == 0.01);
    CHECK(step.law.per_sequence_s == 0.0002);
    CHECK(step.law.per_context_token_s == 1.5e-8);
    CHECK(step.law.prefill_per_token_s == 2e-5);
    CHECK(step.kv_cap_tokens == 400000);
    CHECK(pipeline.workers.length.maximum() == 8192.0);
    CHECK(pipeline.workers.prompt_length.mean() == doctest::Approx(200.0));
    CHECK(pipeline.groups.size == 8);
    CHECK(pipeline.reward->latency_s.mean() == doctest::Approx(2.0));
    CHECK(pipeline.reward->servers == 8);
    CHECK(pipeline.reward->correct_probability == 0.3);
    CHECK(pipeline.trainers.count == 3);
    CHECK(pipeline.trainers.batch == 24);
    CHECK(pipeline.trainers.fresh_per_update == 8);
    const PerTokenTrainerService& per_token = std::get<PerTokenTrainerService>(pipeline.trainers.service);
    CHECK(per_token.gpu_s_per_token == 0.0005);
    CHECK(per_token.base_s == 2.0);
    const ReplayBufferConfig& buffer = std::get<ReplayBufferConfig>(pipeline.store);
    CHECK(buffer.capacity == 96);
    CHECK(buffer.sampling == Sampling::never_used_first);
    CHECK(buffer.sharded);
    CHECK(buffer.positive_bias_delta == 0.25);
    CHECK(pipeline.weight_sync.every == 2);
    CHECK(pipeline.weight_sync.transfer_s.mean() == 3.5);
    CHECK(pipeline.weight_sync.in_flight == InFlight::in_place);
    CHECK(pipeline.weight_sync.trainers_wait);
    CHECK(pipeline.admission->steps_ahead == 2);
    CHECK(pipeline.admission->rollouts_per_update == 16);
    CHECK(std::get<PowerLawNoise>(pipeline.noise->sigma2).alpha == 0.2);
    CHECK(std::get<PowerLawNoise>(pipeline.noise->sigma2).tau == 4.0);
    CHECK(pipeline.noise->rho == 0.1);
}

TEST_CASE("what a scenario leaves out has the documented default") {
    const Scenario scenario = load_scenario((folder / "good/minimal.json").string(), {});
    CHECK(scenario.description.empty());
    CHECK(scenario.seed == 1);
    CHECK(scenario.replications == 10);
    CHECK_FALSE(scenario.horizon.warmup_updates);
    CHECK(scenario.pipeline.workers.length.mean() == 1.0);
    CHECK(scenario.pipeline.workers.prompt_length.mean() == 0.0);
    CHECK(scenario.pipeline.trainers.fresh_per_update == 0);
    const ReplayBufferConfig& buffer = std::get<ReplayBufferConfig>(scenario.pipeline.store);
    CHECK(buffer.sampling == Sampling::uniform_with_replacement);
    CHECK_FALSE(buffer.sharded);
    CHECK(buffer.positive_bias_delta == 0.0);
    CHECK(scenario.pipeline.weight_sync.every == 1);
    CHECK(scenario.pipeline.weight_sync.transfer_s.mean() == 0.0);
    CHECK(scenario.pipeline.weight_sync.in_flight == InFlight::between_rollouts);
    CHECK_FALSE(scenario.pipeline.weight_sync.trainers_wait);
    CHECK_FALSE(scenario.pipeline.reward);
    CHECK_FALSE(scenario.pipeline.admission);
    CHECK_FALSE(scenario.pipeline.noise);
    CHECK_FALSE(scenario.price);
    CHECK(scenario.published.empty());
    CHECK(scenario.resolved_json.find("\"admission\":{\"kind\":\"none\"}") != std::string::npos);
}

TEST_CASE("laws have the moments they are stated by") {
    const auto law = [](const std::string& json) {
        std::string text = read(folder / "good/minimal.json");
        const std::string stated = "\"gpu_s_per_rollout\": 5";
        text.replace(text.find(stated), stated.size(), "\"gpu_s_per_rollout\": " + json);
        const Scenario scenario = decode_scenario(text, "law.json", {});
        return std::get<FirstOrderService>(scenario.pipeline.workers.service).gpu_s_per_rollout;
    };
    CHECK(law("5").is_constant());
    CHECK(law(R"({"kind": "constant", "value": 5})").mean() == 5.0);
    CHECK(law(R"({"kind": "uniform", "min": 2, "max": 4})").mean() == doctest::Approx(3.0));
    CHECK(law(R"({"kind": "exponential", "mean": 7})").mean() == doctest::Approx(7.0));
    const Distribution lognormal = law(R"({"kind": "lognormal", "mean": 5.28, "cv": 0.5})");
    CHECK(lognormal.mean() == doctest::Approx(5.28));
    CHECK(lognormal.second_moment() == doctest::Approx(5.28 * 5.28 * 1.25));
    const Distribution quantiles = law(R"({"kind": "lognormal", "p50": 5, "p99": 20})");
    CHECK(quantiles.cdf(5.0) == doctest::Approx(0.5));
    CHECK(quantiles.cdf(20.0) == doctest::Approx(0.99));
    const Distribution gamma = law(R"({"kind": "gamma", "mean": 3, "cv": 2})");
    CHECK(gamma.mean() == doctest::Approx(3.0));
    CHECK(gamma.second_moment() == doctest::Approx(9.0 * 5.0));
    CHECK(law(R"({"kind": "weibull", "scale": 5, "shape": 0.5})").mean() == doctest::Approx(10.0));
    CHECK(law(R"({"kind": "pareto", "minimum": 1, "shape": 1.5})").mean() == doctest::Approx(3.0));
    // The mean of min(X, m) for P(X > x) = 1/x from 1 on is 1 + ln m.
    CHECK(
        law(R"({"kind": "truncated", "of": {"kind": "pareto", "minimum": 1, "shape": 1}, "max": 100, "mode": "clip"})")
            .mean() == doctest::Approx(1.0 + std::log(100.0)));
    CHECK(law(R"({"kind": "mixture", "components": [{"weight": 3, "of": 2}, {"weight": 1, "of": 10}]})").mean() ==
          doctest::Approx(4.0));
    CHECK(law(R"({"kind": "empirical", "values": [1, 2, 6]})").mean() == doctest::Approx(3.0));
    CHECK(law(R"({"kind": "empirical", "quantiles": [[0, 1], [1, 9]]})").mean() == doctest::Approx(5.0));
}

TEST_CASE("the shipped paper scenarios have the published imbalance and splits") {
    for (const auto& [model, mu, capacity] :
         {std::tuple("qwen2.5-7b", 5.28, 84), std::tuple("qwen3-0.6b", 6.84, 128)}) {
        for (const auto& [split, workers, trainers] :
             {std::tuple("6-2", 6, 2), std::tuple("5-3", 5, 3), std::tuple("4-4", 4, 4)}) {
            for (const char* suffix : {"", "-no-buffer"}) {
                const std::string name = std::string(model) + "-" + split + suffix;
                CAPTURE(name);
                const Scenario scenario =
                    load_scenario((source_dir / "scenarios/paper" / (name + ".json")).string(), {});
                const PipelineConfig& pipeline = scenario.pipeline;
                CHECK(scenario.name == name);
                CHECK(pipeline.workers.count == workers);
                CHECK(pipeline.trainers.count == trainers);
                CHECK(pipeline.trainers.batch == 60);
                CHECK(pipeline.groups.size == 16);
                // mu: the cost of a batch of rollouts over the cost of an update.
                const double rollout = std::get<FirstOrderService>(pipeline.workers.service).gpu_s_per_rollout.mean();
                const double update = std::get<FixedTrainerService>(pipeline.trainers.service).gpu_s_per_update.mean();
                CHECK(60.0 * rollout / update == doctest::Approx(mu));
                if (const auto* buffer = std::get_if<ReplayBufferConfig>(&pipeline.store)) {
                    CHECK(buffer->capacity == capacity);
                }
            }
        }
    }
}

TEST_CASE("a file that cannot be read is an error of the file") {
    CHECK_THROWS_WITH_AS(load_scenario("no/such/file.json", {}),
                         "no/such/file.json: error: cannot be read: No such file or directory", ScenarioError);
    CHECK_THROWS_AS(load_scenario(source_dir.string(), {}), ScenarioError);
}

TEST_CASE("a byte order mark at the start is no part of the text") {
    const std::string text = "\xEF\xBB\xBF" + read(folder / "good/minimal.json");
    CHECK(decode_scenario(text, "bom.json", {}).name == "small");
    CHECK(problems_of("\xEF\xBB\xBF{\"nam\": 1}").front().column == 1);
}

}  // namespace
}  // namespace millrace
