#include "sim/sweep/sweep_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/engine/content_hash.h"
#include "sim/scenario/decode.h"
#include "sim/sweep/sweep_vocabulary.h"
#include "tests/scenario/corpus.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

const fs::path folder = corpus::source_dir / "tests/scenario/corpus/sweep";

std::vector<fs::path> good_and_shipped() {
    std::vector<fs::path> files = corpus::json_files(folder / "good");
    CHECK(files.size() >= 5);
    const std::vector<fs::path> shipped = corpus::json_files(corpus::source_dir / "scenarios/sweeps");
    CHECK(shipped.size() >= 2);
    files.insert(files.end(), shipped.begin(), shipped.end());
    return files;
}

Sweep good(const std::string& name, const std::vector<std::string>& overrides = {}) {
    return load_sweep((folder / "good" / (name + ".json")).string(), overrides);
}

/// A sweep of one family whose base is tests/scenario/corpus/good/`base`.json; `family` holds its other keys.
Sweep sweep_of(const std::string& base, const std::string& family) {
    const std::string text = R"({"name": "x", "families": [{"name": "f", "base": "../../good/)" + base + ".json\"" +
                             (family.empty() ? "" : ", " + family) +
                             R"(}], "objectives": [{"metric": "staleness/mean", "goal": "minimize"},
                                {"metric": "compute/gamma_simulated", "goal": "minimize"}]})";
    return decode_sweep(text, (folder / "good/test.json").string(), {});
}

std::string values_of(const Design& design) {
    std::string text;
    for (const auto& [path, value] : design.values) {
        text += (text.empty() ? "" : " ") + path + "=" + value;
    }
    return text;
}

bool same_designs(const Sweep& a, const Sweep& b) {
    return std::equal(a.designs.begin(), a.designs.end(), b.designs.begin(), b.designs.end(),
                      [](const Design& one, const Design& other) {
                          return one.id == other.id && one.family == other.family && one.values == other.values &&
                                 one.base == other.base && one.set == other.set && one.error == other.error &&
                                 one.scenario.has_value() == other.scenario.has_value() &&
                                 (!one.scenario || one.scenario->resolved_json == other.scenario->resolved_json);
                      });
}

// ---- the corpus ---------------------------------------------------------------------------------------------------

TEST_CASE("every malformed sweep file is rejected with the right place, key and suggestion") {
    corpus::check_bad_files(folder, 100, [](const std::string& path) { load_sweep(path, {}); });
}

TEST_CASE("a good sweep file that loses a required key or gains an unknown one is rejected") {
    const std::string name = (folder / "good/test.json").string();
    const int mutations = corpus::check_mutations(folder, corpus::json_files(folder / "good"),
                                                  [&](const std::string& text) { decode_sweep(text, name, {}); });
    CHECK(mutations > 100);
}

TEST_CASE("every good and every shipped sweep decodes, and its resolved form decodes to the same designs") {
    for (const fs::path& file : good_and_shipped()) {
        CAPTURE(file.string());
        const Sweep sweep = load_sweep(file.string(), {});
        const Sweep again = decode_resolved_sweep(sweep.resolved_json, "sweep.json");
        CHECK(again.resolved_json == sweep.resolved_json);
        CHECK(same_designs(again, sweep));
        CHECK(again.warnings == sweep.warnings);
        CHECK(again.name == sweep.name);
        CHECK(again.description == sweep.description);
        CHECK(again.objectives.size() == sweep.objectives.size());
        CHECK(again.replications.budget == sweep.replications.budget);
        CHECK(again.most_added == sweep.most_added);
        CHECK(sweep.resolved_json.find('\n') == std::string::npos);
        CHECK(sweep.resolved_json.find("$schema") == std::string::npos);
        std::set<std::string> ids;
        for (const Design& design : sweep.designs) {
            CHECK(design.scenario.has_value() == design.error.empty());
            CHECK(design.error.find('\n') == std::string::npos);
            CHECK(ids.insert(design.id).second);
        }
    }
}

TEST_CASE("schema and decoder of sweep files have the same keys, required keys and defaults") {
    const nlohmann::json schema =
        nlohmann::json::parse(corpus::read(corpus::source_dir / "scenarios/schema/sweep.schema.json"));
    for (const ObjectShape& shape : sweep_vocabulary().shapes()) {
        const nlohmann::json* node = &schema;
        std::istringstream steps{std::string(shape.path)};
        for (std::string step; std::getline(steps, step, '.');) {
            node = &node->at("properties").at(step);
            node = node->contains("items") ? &node->at("items") : node;
        }
        corpus::check_same_keys(*node, shape, {});
    }
    const nlohmann::json& metrics =
        schema.at("properties").at("objectives").at("items").at("properties").at("metric").at("enum");
    CHECK(metrics.get<std::vector<std::string>>() ==
          std::vector<std::string>(metric_keys().begin(), metric_keys().end()));
}

// ---- the designs --------------------------------------------------------------------------------------------------

TEST_CASE("designs come in the order of the file with the last axis fastest, without what constraints exclude") {
    const Sweep sweep = good("small");
    REQUIRE(sweep.designs.size() == 4);  // 4 workers and at most 6 GPUs leave 2 trainers
    CHECK(values_of(sweep.designs[0]) == "store.capacity=64 trainers.count=1");
    CHECK(values_of(sweep.designs[1]) == "store.capacity=64 trainers.count=2");
    CHECK(values_of(sweep.designs[2]) == "store.capacity=256 trainers.count=1");
    CHECK(values_of(sweep.designs[3]) == "store.capacity=256 trainers.count=2");
    for (const Design& design : sweep.designs) {
        REQUIRE(design.scenario);
        CHECK(design.family == "buffer");
        CHECK(design.base == "../../good/minimal.json");
        CHECK(design.scenario->seed == 7);
        CHECK(design.scenario->horizon.updates == 100);
    }
    CHECK(sweep.designs[1].scenario->pipeline.trainers.count == 2);
    CHECK(sweep.name == "small");
    CHECK(sweep.warnings.empty());
    CHECK(sweep.objectives.size() == 2);
    CHECK(sweep.objectives[1].metric == "staleness/mean");
    CHECK(sweep.objectives[1].minimize);
    CHECK(sweep.replications.least == 5);
    CHECK(sweep.replications.most == 5);
    CHECK(sweep.replications.budget == 0);
}

TEST_CASE("a design is what the base becomes by its changes, and its id is the hash of that") {
    for (const char* const name : {"small", "everything"}) {
        for (const Design& design : good(name).designs) {
            if (!design.scenario) {
                continue;
            }
            const Scenario scenario = load_scenario((folder / "good" / design.base).string(), design.set);
            CHECK(scenario.resolved_json == design.scenario->resolved_json);
            CHECK(design.id == hash_text(content_hash(scenario.resolved_json)));
            CHECK(design.id.size() == 16);
        }
    }
}

TEST_CASE("a family without axes is one design") {
    const Sweep sweep = good("minimal");
    REQUIRE(sweep.designs.size() == 1);
    CHECK(sweep.designs[0].values.empty());
    CHECK(sweep.designs[0].set.empty());
    CHECK(sweep.replications.least == 10);  // the default
    CHECK(sweep.replications.most == 10);
}

TEST_CASE("zipped axes go together, whole objects are values, and set applies whole objects before their parts") {
    const Sweep sweep = good("everything");
    const auto count = [&](const auto& predicate) {
        return std::count_if(sweep.designs.begin(), sweep.designs.end(), predicate);
    };
    // 3 splits x 5 sizes x 2 evictions x 4 couplings; positive bias needs 64 rollouts of capacity, or fifo a coupling
    // of at most 0.25.
    CHECK(count([](const Design& d) { return d.family == "buffer"; }) == 3 * (3 * 2 * 4 + 2 * 1 * 3));
    CHECK(count([](const Design& d) { return d.family == "no buffer"; }) == 2);
    bool has_exact_coupling = false;
    for (const Design& design : sweep.designs) {
        CHECK(design.error == "");
        REQUIRE(design.scenario);
        CHECK(design.scenario->seed == 7);  // of the first family, whatever the second one's base says
        CHECK(design.scenario->price->usd_per_gpu_hour == 2.0);
        if (design.family == "buffer") {
            CHECK(design.scenario->pipeline.workers.count + design.scenario->pipeline.trainers.count == 8);
            CHECK(design.scenario->horizon.updates == 120);
            CHECK(design.scenario->horizon.warmup_updates == 10);
        } else {
            CHECK(design.scenario->horizon.updates == 200);
        }
        has_exact_coupling = has_exact_coupling || design.scenario->pipeline.noise->rho == 0.3;
    }
    CHECK(has_exact_coupling);
    CHECK(sweep.replications.least == 2);
    CHECK(sweep.replications.most == 8);
    CHECK(sweep.replications.budget == 2000);
    CHECK_FALSE(sweep.objectives[2].minimize);
}

TEST_CASE("a default that depends on another key follows the axis, in the resolved form too") {
    const Sweep sweep = sweep_of("one_step_off", R"("axes": [{"path": "trainers.batch", "values": [16, 32]}],
        "set": {"store": {"kind": "transfer_queue", "capacity": 64},
                "admission": {"kind": "token_bucket", "steps_ahead": 1}})");
    REQUIRE(sweep.designs.size() == 2);
    for (const Sweep& either : {sweep, decode_resolved_sweep(sweep.resolved_json, "sweep.json")}) {
        CHECK(either.designs[0].scenario->pipeline.admission->rollouts_per_update == 16);
        CHECK(either.designs[1].scenario->pipeline.admission->rollouts_per_update == 32);
    }
}

TEST_CASE("an impossible design says why on one line and does not stop the others") {
    const Sweep sweep = sweep_of("without_replacement", R"("axes": [{"path": "store.capacity", "values": [8, 64]}])");
    REQUIRE(sweep.designs.size() == 2);
    CHECK_FALSE(sweep.designs[0].scenario);
    CHECK(sweep.designs[0].error.starts_with("store.capacity: "));
    CHECK(sweep.designs[1].scenario);
    CHECK(sweep.designs[1].error.empty());
}

TEST_CASE("a value that no scenario can have is an error at its place, however many designs have it") {
    const auto problems = corpus::problems_of([] {
        sweep_of("without_replacement", R"("axes": [{"path": "store.capacity", "values": [8, 64, "x", -1]},
                                                    {"path": "workers.count", "range": {"from": 0, "to": 3}}],
                                           "constraints": ["store.capacity >= 0"])");
    });
    REQUIRE(problems.size() == 3);
    CHECK(problems[0].key == "families.0.axes.0.values.2");
    CHECK(problems[0].message == "store.capacity: expected a whole number of at least 1, found \"x\"");
    CHECK(problems[0].hint == "numbers stand without quotes");
    CHECK(problems[1].key == "families.0.axes.0.values.3");  // though its constraint excludes it
    CHECK(problems[1].message == "store.capacity: expected a whole number of at least 1, found -1");
    CHECK(problems[2].key == "families.0.axes.1.range");
}

TEST_CASE("an axis may be good for some values of another one only") {
    // With a queue there is no eviction: error rows, not an error.
    const Sweep sweep = sweep_of("minimal", R"("axes": [
        {"path": "store", "values": [{"kind": "replay_buffer", "capacity": 64}, {"kind": "transfer_queue", "capacity": 64}]},
        {"path": "store.eviction", "values": [{"kind": "fifo"}]}])");
    REQUIRE(sweep.designs.size() == 2);
    CHECK(sweep.designs[0].scenario);
    CHECK_FALSE(sweep.designs[1].scenario);
}

TEST_CASE("when all designs are impossible each reason is told once, with its count and first design") {
    const auto problems = corpus::problems_of([] {
        sweep_of("without_replacement", R"("set": {"horizon.warmup_updates": 10},
            "axes": [{"zip": [{"path": "store.capacity", "values": [8, 9, 10, 64]},
                              {"path": "horizon.updates", "values": [50, 50, 50, 10]}]}])");
    });
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].key == "families.0.axes.0.zip.0.values.0");
    CHECK(problems[0].message.find("all 4 designs of the family are impossible: 3 by store.capacity: ") == 0);
    CHECK(problems[0].message.find(
              "(the first: store.capacity=8, horizon.updates=50); 1 by horizon.warmup_updates: ") != std::string::npos);
}

TEST_CASE("designs may be asked for in gaps of the frontier") {
    const Sweep sweep = good("refined");
    CHECK(sweep.most_added == 6);
    CHECK(sweep.designs.size() == 4);  // none is there before its neighbours have run
    CHECK(decode_resolved_sweep(sweep.resolved_json, "sweep.json").most_added == 6);
    // Of a sweep that asks for none, the resolved form is what it was before there was anything to ask for.
    CHECK(good("small").most_added == 0);
    CHECK(good("small").resolved_json.find("refine") == std::string::npos);
}

TEST_CASE("designs that stand there already are left out with a warning") {
    const Sweep sweep = good("overlapping");
    REQUIRE(sweep.designs.size() == 3);
    CHECK(sweep.designs[2].family == "again");
    CHECK(values_of(sweep.designs[2]) == "store.capacity=48");
    REQUIRE(sweep.warnings.size() == 1);
    CHECK(sweep.warnings[0].find("\"again\" repeats 2 designs, which are left out") != std::string::npos);
    CHECK(sweep.warnings[0].find("\"queue\"") != std::string::npos);
}

TEST_CASE("all families have the seed of the first unless they state their own") {
    const auto seeds = [](const std::string& first, const std::string& second) {
        const std::string text = R"({"name": "x", "families": [{"name": "a", "base": "../../good/minimal.json")" +
                                 first + R"(}, {"name": "b", "base": "../../good/queue_fifo_block.json")" + second +
                                 R"(}], "objectives": [{"metric": "staleness/mean", "goal": "minimize"},
                                    {"metric": "compute/gamma_simulated", "goal": "minimize"}]})";
        std::vector<std::uint64_t> found;
        for (const Design& design : decode_sweep(text, (folder / "good/test.json").string(), {}).designs) {
            found.push_back(design.scenario->seed);
        }
        return found;
    };
    CHECK(seeds("", "") == std::vector<std::uint64_t>{1, 1});
    CHECK(seeds(R"(, "set": {"seed": 9})", "") == std::vector<std::uint64_t>{9, 9});
    CHECK(seeds(R"(, "set": {"seed": 9})", R"(, "set": {"seed": 4})") == std::vector<std::uint64_t>{9, 4});
    CHECK(seeds("", R"(, "axes": [{"path": "seed", "values": [5, 6]}])") == std::vector<std::uint64_t>{1, 5, 6});
}

TEST_CASE("ids do not depend on how a design is reached") {
    const Sweep by_axis = sweep_of("minimal", R"("axes": [{"path": "store.capacity", "values": [128]}])");
    const Sweep by_range =
        sweep_of("minimal", R"("axes": [{"path": "store.capacity", "range": {"from": 128.0, "to": 128}}])");
    const Sweep by_set = sweep_of("minimal", R"("set": {"store.capacity": 128})");
    CHECK(by_axis.designs[0].id == by_range.designs[0].id);
    CHECK(by_axis.designs[0].id == by_set.designs[0].id);
    CHECK(by_axis.designs[0].id != good("minimal").designs[0].id);
    CHECK(by_axis.resolved_json == by_range.resolved_json);
}

// ---- errors -------------------------------------------------------------------------------------------------------

TEST_CASE("what is wrong with a base scenario is reported in its own file, once, beside what is wrong in the sweep") {
    const std::string base = R"("../../bad/count_zero.json")";
    const std::string text = R"({"name": "", "families": [{"name": "a", "base": )" + base +
                             R"(}, {"name": "b", "base": )" + base +
                             R"(}], "objectives": [{"metric": "staleness/mean", "goal": "minimize"},
                                {"metric": "staleness/p99", "goal": "minimize"}]})";
    const std::string file = (folder / "good/test.json").string();
    const auto problems = corpus::problems_of([&] { decode_sweep(text, file, {}); });
    REQUIRE(problems.size() == 2);
    CHECK(problems[0].source == file);
    CHECK(problems[0].key == "name");
    CHECK(problems[1].source.ends_with("bad/count_zero.json"));
    CHECK(problems[1].key == "workers.count");
    CHECK(problems[1].line > 1);
}

TEST_CASE("a resolved sweep reads no other file") {
    const auto problems = corpus::problems_of(
        [] { decode_resolved_sweep(corpus::read(folder / "good/small.json"), (folder / "good/small.json").string()); });
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].key == "families.0.base");
}

TEST_CASE("overrides change the sweep file itself") {
    CHECK(good("small", {"replications=3"}).replications.most == 3);
    const Sweep other = good("small", {"families.0.axes.0.values=[128]", "families.0.set={\"seed\": 3}",
                                       "families.0.constraints=[\"trainers.count == 3\"]"});
    REQUIRE(other.designs.size() == 1);
    CHECK(values_of(other.designs[0]) == "store.capacity=128 trainers.count=3");
    CHECK(other.designs[0].scenario->seed == 3);
    CHECK(other.designs[0].scenario->horizon.updates == 200);  // the base's
    const auto misspelt = corpus::problems_of([] { good("small", {"families.0.axes.0.path=store.capcity"}); });
    REQUIRE(misspelt.size() == 1);
    CHECK(misspelt[0].source == "--set families.0.axes.0.path=store.capcity");
    CHECK(misspelt[0].column == 30);
    CHECK(misspelt[0].suggestion == "store.capacity");
    const auto impossible = corpus::problems_of([] { good("small", {"families.0.axes.0.values=[\"x\"]"}); });
    REQUIRE(impossible.size() == 1);
    CHECK(impossible[0].source == "--set families.0.axes.0.values=[\"x\"]");
}

TEST_CASE("a sweep is not a scenario, and each says what reads the other") {
    const auto as_scenario = corpus::problems_of([] { load_scenario((folder / "good/small.json").string(), {}); });
    REQUIRE(as_scenario.size() == 1);
    CHECK(as_scenario[0].key == "families");
    CHECK(as_scenario[0].hint.find("millrace sweep") != std::string::npos);
    const auto as_sweep =
        corpus::problems_of([] { load_sweep((corpus::source_dir / "scenarios/quickstart.json").string(), {}); });
    REQUIRE(!as_sweep.empty());
    CHECK(std::any_of(as_sweep.begin(), as_sweep.end(), [](const ScenarioProblem& problem) {
        return problem.key == "store" && problem.hint.find("base") != std::string::npos;
    }));
}

}  // namespace
}  // namespace millrace
