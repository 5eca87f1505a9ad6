#include "sim/scenario/calibration.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/scenario/decode.h"
#include "sim/scenario/vocabulary.h"
#include "tests/scenario/corpus.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

const fs::path folder = corpus::source_dir / "tests/scenario/corpus/calibration";

std::vector<fs::path> good_and_shipped() {
    std::vector<fs::path> files = corpus::json_files(folder / "good");
    CHECK(files.size() >= 3);
    const std::vector<fs::path> shipped = corpus::json_files(corpus::source_dir / "scenarios/calibrations");
    CHECK(shipped.size() >= 3);
    files.insert(files.end(), shipped.begin(), shipped.end());
    return files;
}

Calibration good(const std::string& name, const std::vector<std::string>& overrides = {}) {
    return load_calibration((folder / "good" / (name + ".json")).string(), overrides);
}

// ---- the corpus ---------------------------------------------------------------------------------------------------

TEST_CASE("every malformed calibration is rejected with the right place, key and suggestion") {
    corpus::check_bad_files(folder, 40, [](const std::string& path) { load_calibration(path, {}); });
}

TEST_CASE("every good and every shipped calibration decodes, and its resolved form decodes to the same") {
    for (const fs::path& file : good_and_shipped()) {
        CAPTURE(file.string());
        const std::string text = corpus::read(file);
        CHECK(is_calibration(std::string_view(text)));
        const Calibration calibration = load_calibration(file.string(), {});
        const Calibration again = decode_calibration(calibration.resolved_json, "resolved.json", {});
        CHECK(again.resolved_json == calibration.resolved_json);
        CHECK(again.sources.size() == calibration.sources.size());
        CHECK(again.measured.pipeline.trainers.batch == calibration.measured.pipeline.trainers.batch);
        CHECK(again.target.on_policy_updates == calibration.target.on_policy_updates);
    }
}

TEST_CASE("a good calibration that loses a required key or gains an unknown one is rejected") {
    const int mutations = corpus::check_mutations(
        folder, good_and_shipped(), [](const std::string& text) { decode_calibration(text, "test.json", {}); });
    CHECK(mutations > 200);
}

TEST_CASE("schema and decoder of calibrations have the same keys, required keys and defaults") {
    const nlohmann::json schema =
        nlohmann::json::parse(corpus::read(corpus::source_dir / "scenarios/schema/calibration.schema.json"));
    int compared = 0;
    for (const ObjectShape& shape : calibration_vocabulary().shapes()) {
        if (shape.path.starts_with("law")) {
            continue;  // the same text as in the schema of scenarios, see below
        }
        const nlohmann::json* node = &schema;
        std::istringstream steps{std::string(shape.path)};
        for (std::string step; std::getline(steps, step, '.');) {
            node = &node->at("properties").at(step);
        }
        node = node->contains("items") ? &node->at("items") : node;
        corpus::check_same_keys(shape.kind.empty() ? *node : corpus::schema_of_kind(*node, shape.kind), shape,
                                {"length"});
        ++compared;
    }
    CHECK(compared >= 17);
}

TEST_CASE("the schemas of scenarios and of calibrations say the same of what is measured") {
    const auto measured_part = [](const std::string& schema) {
        const nlohmann::json whole =
            nlohmann::json::parse(corpus::read(corpus::source_dir / "scenarios/schema" / schema));
        nlohmann::json parts = {{"law", whole.at("definitions")}};
        for (const char* part : {"workers", "groups", "reward", "trainers", "weight_sync", "noise", "price"}) {
            for (const auto& [key, rule] : whole.at("properties").at(part).at("properties").items()) {
                parts[part][key] = rule;
            }
        }
        return parts;
    };
    nlohmann::json scenario = measured_part("scenario.schema.json");
    CHECK(scenario["workers"].erase("count") + scenario["trainers"].erase("count") +
              scenario["trainers"].erase("fresh_per_update") + scenario["weight_sync"].erase("every") ==
          4);
    CHECK(measured_part("calibration.schema.json") == scenario);
}

// ---- what the values become ---------------------------------------------------------------------------------------

TEST_CASE("every key of a calibration arrives where it belongs") {
    const Calibration calibration = good("everything");
    const PipelineConfig& pipeline = calibration.measured.pipeline;
    CHECK(calibration.name == "everything");
    CHECK(calibration.description == "Every key that a calibration has.");
    REQUIRE(calibration.sources.size() == 14);
    CHECK(calibration.sources[3].path == "workers.prompt_length.min");
    CHECK(calibration.sources[3].text == "measured");
    CHECK(calibration.sources[3].where == "a log");
    CHECK(pipeline.workers.count == 1);
    CHECK(pipeline.workers.slots == 16);
    const auto& step = std::get<StepService>(pipeline.workers.service);
    CHECK(step.law.base_s == 0.01);
    CHECK(step.law.prefill_per_token_s == 1e-5);
    CHECK(step.kv_cap_tokens == 100000);
    CHECK(pipeline.workers.length.maximum() == 8000.0);
    CHECK(pipeline.workers.prompt_length.mean() == doctest::Approx(50.0));
    CHECK(pipeline.groups.size == 8);
    CHECK(pipeline.reward.value().servers == 4);
    CHECK(pipeline.reward->correct_probability == 0.25);
    CHECK(pipeline.trainers.count == 1);
    CHECK(pipeline.trainers.batch == 64);
    CHECK(std::get<PerTokenTrainerService>(pipeline.trainers.service).base_s == 2.0);
    CHECK(pipeline.weight_sync.every == 1);
    CHECK(pipeline.weight_sync.transfer_s.mean() == 0.5);
    CHECK(pipeline.weight_sync.in_flight == InFlight::in_place);
    CHECK(pipeline.weight_sync.trainers_wait);
    CHECK(sigma2(pipeline.noise.value().sigma2, 10.0) == 1.5);
    CHECK(pipeline.noise->rho == 0.2);
    CHECK(calibration.measured.price.value().usd_per_gpu_hour == 3.0);
    CHECK(calibration.target.on_policy_updates == 250);
    CHECK(calibration.target.source == "our log");
}

TEST_CASE("what is changed on the command line needs no source, what stands in the file does") {
    CHECK(good("minimal", {"price.usd_per_gpu_hour=4"}).measured.price.value().usd_per_gpu_hour == 4.0);
    CHECK(good("minimal", {"workers.slots=8"}).measured.pipeline.workers.slots == 8);
    const auto refused = corpus::problems_of([] { good("minimal", {"workers.count=8"}); });
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].key == "workers.count");
    CHECK(refused[0].hint.find("millrace plan") != std::string::npos);
}

TEST_CASE("a calibration is not a scenario, and each says which command reads the other") {
    const auto as_scenario = corpus::problems_of([] { load_scenario((folder / "good/minimal.json").string(), {}); });
    REQUIRE(as_scenario.size() == 1);
    CHECK(as_scenario[0].key == "sources");
    CHECK(as_scenario[0].hint.find("millrace plan") != std::string::npos);
    const auto as_calibration =
        corpus::problems_of([] { load_calibration((corpus::source_dir / "scenarios/quickstart.json").string(), {}); });
    REQUIRE(as_calibration.size() == 1);
    CHECK(as_calibration[0].key == "store");
    CHECK(as_calibration[0].hint.find("millrace run") != std::string::npos);
}

}  // namespace
}  // namespace millrace
