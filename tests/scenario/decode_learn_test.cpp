#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sim/scenario/decode.h"
#include "sim/scenario/decode_learner.h"
#include "sim/scenario/learn_file.h"
#include "sim/scenario/vocabulary.h"
#include "tests/scenario/corpus.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

const fs::path folder = corpus::source_dir / "tests/scenario/corpus/learn";

std::vector<fs::path> good_and_shipped() {
    std::vector<fs::path> files = corpus::json_files(folder / "good");
    CHECK(files.size() >= 12);
    const std::vector<fs::path> shipped = corpus::shipped_to_learn(corpus::FileKind::learn_file);
    CHECK(shipped.size() >= 3);
    files.insert(files.end(), shipped.begin(), shipped.end());
    return files;
}

LearnFile good(const std::string& name, const std::vector<std::string>& overrides = {}) {
    return load_learn_file((folder / "good" / (name + ".json")).string(), overrides);
}

std::vector<ScenarioProblem> problems_with(const std::vector<std::string>& overrides) {
    return corpus::problems_of([&] { good("small", overrides); });
}

// ---- the corpus ---------------------------------------------------------------------------------------------------

TEST_CASE("every malformed learn file is rejected with the right place, key and suggestion") {
    corpus::check_bad_files(folder, 60, [](const std::string& path) { load_learn_file(path, {}); });
}

TEST_CASE("every good and every shipped learn file decodes, and its resolved form decodes to the same") {
    for (const fs::path& file : good_and_shipped()) {
        CAPTURE(file.string());
        const LearnFile learn = load_learn_file(file.string(), {});
        const LearnFile again = decode_learn_file(learn.resolved_json, "resolved.json", {});
        CHECK(again.resolved_json == learn.resolved_json);
        CHECK(again.name == learn.name);
        CHECK(again.learner.objective.clip_high == learn.learner.objective.clip_high);
        CHECK(learn.resolved_json.find('\n') == std::string::npos);
        CHECK(learn.resolved_json.find("$schema") == std::string::npos);
    }
}

TEST_CASE("a good learn file that loses a required key or gains an unknown one is rejected") {
    const int mutations = corpus::check_mutations(
        folder, good_and_shipped(), [](const std::string& text) { decode_learn_file(text, "test.json", {}); });
    CHECK(mutations > 200);
}

TEST_CASE("schema and decoder of learn files have the same keys, required keys and defaults") {
    const nlohmann::json schema =
        nlohmann::json::parse(corpus::read(corpus::source_dir / "scenarios/schema/learn.schema.json"));
    for (const ObjectShape& shape : learn_vocabulary().shapes()) {
        const nlohmann::json* node = &schema;
        std::istringstream steps{std::string(shape.path)};
        for (std::string step; std::getline(steps, step, '.');) {
            node = &node->at("properties").at(step);
        }
        // The default of clip depends on the two other ways to state it.
        corpus::check_same_keys(shape.kind.empty() ? *node : corpus::schema_of_kind(*node, shape.kind), shape,
                                {"clip"});
    }
}

TEST_CASE("the schemas of scenarios and of learn files say the same of what their learners share") {
    const auto learner_of = [](const std::string& schema) {
        const fs::path file = corpus::source_dir / "scenarios/schema" / schema;
        nlohmann::json learner = nlohmann::json::parse(corpus::read(file)).at("properties").at("learner");
        learner.erase("description");
        learner.at("properties").erase("replicas");
        learner.at("properties").erase("target_pass_at_1");
        nlohmann::json& evaluation = learner.at("properties").at("evaluation");
        evaluation.erase("examples");
        CHECK(evaluation.at("properties").erase("every_units") + evaluation.at("properties").erase("every_updates") ==
              1);
        return learner;
    };
    CHECK(learner_of("scenario.schema.json") == learner_of("learn.schema.json"));
}

TEST_CASE("a scenario is not a learn file, and each says which command reads the other") {
    const auto as_learn_file =
        corpus::problems_of([] { load_learn_file((corpus::source_dir / "scenarios/quickstart.json").string(), {}); });
    REQUIRE(!as_learn_file.empty());
    bool names_run = false;
    for (const ScenarioProblem& problem : as_learn_file) {
        names_run = names_run || problem.hint.find("millrace run") != std::string::npos;
    }
    CHECK(names_run);
    const auto as_scenario =
        corpus::problems_of([] { load_scenario((corpus::source_dir / "scenarios/learn/sort8.json").string(), {}); });
    // Alone: the pipeline that it lacks is no further fault.
    REQUIRE(as_scenario.size() == 1);
    CHECK(as_scenario[0].key == "learner");
    CHECK(as_scenario[0].hint.find("millrace learn") != std::string::npos);
}

// ---- what the values become ---------------------------------------------------------------------------------------

TEST_CASE("every key of a learn file arrives where it belongs") {
    const LearnFile file = good("everything");
    CHECK(file.name == "everything");
    CHECK(file.description == "Every key that a supervised start and clipped GRPO have.");
    CHECK(file.seed == 9007199254740992ULL);
    CHECK(file.replications == 2);
    CHECK(file.updates == 3);
    CHECK(file.group_size == 2);
    CHECK(file.batch == 4);

    const LearnerSettings& learner = file.learner;
    CHECK(learner.task.kind == TaskKind::addition);
    CHECK(learner.task.size == 16);
    CHECK(learner.model.layers == 16);
    CHECK(learner.model.width == 8);
    CHECK(learner.model.heads == 8);
    CHECK(learner.model.mlp_width == 8);
    CHECK(learner.model.context == 53);
    CHECK_FALSE(learner.warm_start.checkpoint);
    CHECK(learner.warm_start.seed == 0);
    CHECK(learner.warm_start.updates == 1);
    CHECK(learner.warm_start.batch == 1);
    CHECK(learner.warm_start.annealed_fraction == 1.0);
    CHECK(learner.warm_start.optimizer.learning_rate == 1.0);
    CHECK(learner.warm_start.optimizer.warmup_updates == 0);
    CHECK(learner.warm_start.optimizer.beta1 == 0.0);
    CHECK(learner.warm_start.optimizer.beta2 == 0.0);
    CHECK(learner.warm_start.optimizer.epsilon == 1e-12);
    CHECK(learner.warm_start.optimizer.weight_decay == 1.0);
    CHECK(learner.warm_start.optimizer.max_gradient_norm == 0.0);
    CHECK(learner.objective.algorithm == Algorithm::grpo);
    CHECK(learner.objective.ratio == RatioLevel::sequence);
    CHECK(learner.objective.clip_low == 0.2);
    CHECK(learner.objective.clip_high == 0.28);
    CHECK(learner.optimizer.learning_rate == 1e-6);
    CHECK(learner.optimizer.warmup_updates == 1000);
    CHECK(learner.optimizer.beta1 == 0.999);
    CHECK(learner.optimizer.beta2 == 0.9999);
    CHECK(learner.optimizer.epsilon == 1.0);
    CHECK(learner.optimizer.weight_decay == 0.0);
    CHECK(learner.optimizer.max_gradient_norm == 0.5);
    CHECK(learner.evaluation.every_updates == 1000);
    CHECK(learner.evaluation.sampled_prompts == 1);
    CHECK(learner.evaluation.samples == 16);
    CHECK(learner.evaluation.greedy_prompts == 1);
}

TEST_CASE("what a learn file leaves out has the default of the settings") {
    const LearnFile file = good("minimal");
    const LearnFile defaults;
    CHECK(file.seed == defaults.seed);
    CHECK(file.replications == defaults.replications);
    CHECK(file.group_size == defaults.group_size);
    CHECK(file.batch == defaults.batch);
    const LearnerSettings& learner = file.learner;
    const LearnerSettings& expected = defaults.learner;
    CHECK(learner.model.layers == expected.model.layers);
    CHECK(learner.model.width == expected.model.width);
    CHECK(learner.model.heads == expected.model.heads);
    CHECK(learner.model.mlp_width == expected.model.mlp_width);
    CHECK(learner.model.context == expected.model.context);
    CHECK(learner.warm_start.checkpoint == expected.warm_start.checkpoint);
    CHECK(learner.warm_start.seed == expected.warm_start.seed);
    CHECK(learner.warm_start.updates == expected.warm_start.updates);
    CHECK(learner.warm_start.batch == expected.warm_start.batch);
    CHECK(learner.warm_start.annealed_fraction == expected.warm_start.annealed_fraction);
    CHECK(learner.objective.algorithm == expected.objective.algorithm);
    CHECK(learner.objective.ratio == expected.objective.ratio);
    CHECK(learner.objective.clip_low == expected.objective.clip_low);
    CHECK(learner.objective.clip_high == expected.objective.clip_high);
    CHECK(good("asymre_default").learner.objective.shift == expected.objective.shift);
    for (const auto& [read, stated] : {std::pair{learner.warm_start.optimizer, expected.warm_start.optimizer},
                                       std::pair{learner.optimizer, expected.optimizer}}) {
        CHECK(read.learning_rate == stated.learning_rate);
        CHECK(read.warmup_updates == stated.warmup_updates);
        CHECK(read.beta1 == stated.beta1);
        CHECK(read.beta2 == stated.beta2);
        CHECK(read.epsilon == stated.epsilon);
        CHECK(read.weight_decay == stated.weight_decay);
        CHECK(read.max_gradient_norm == stated.max_gradient_norm);
    }
    CHECK(learner.evaluation.every_updates == expected.evaluation.every_updates);
    CHECK(learner.evaluation.sampled_prompts == expected.evaluation.sampled_prompts);
    CHECK(learner.evaluation.samples == expected.evaluation.samples);
    CHECK(learner.evaluation.greedy_prompts == expected.evaluation.greedy_prompts);
}

TEST_CASE("words and kinds become what they stand for") {
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(good("clip_none").learner.objective.clip_low == infinity);
    CHECK(good("clip_none").learner.objective.clip_high == infinity);
    CHECK(good("clip_high_none").learner.objective.clip_low == 1.0);
    CHECK(good("clip_high_none").learner.objective.clip_high == infinity);
    CHECK(good("clip_left_out").learner.objective.clip_high == 0.2);
    CHECK(good("asymre").learner.objective.algorithm == Algorithm::asymre);
    CHECK(good("asymre").learner.objective.shift == 0.0);
    CHECK(good("reinforce").learner.objective.algorithm == Algorithm::reinforce);
    CHECK(good("reinforce").learner.objective.ratio == RatioLevel::sequence);
    CHECK(good("countdown").learner.task.kind == TaskKind::countdown);
    CHECK(good("countdown").learner.task.size == 3);
    CHECK(good("checkpoint").learner.warm_start.checkpoint == "theta0.ckpt");
    CHECK_FALSE(good("checkpoint").learner.warm_start.checkpoint_hash);
    CHECK(good("checkpoint_hash").learner.warm_start.checkpoint_hash == "0123456789abcdef");
}

TEST_CASE("what only a scenario says is named, with what a learn file says instead") {
    const auto problem = [](const std::string& override) {
        const std::vector<ScenarioProblem> problems = problems_with({override});
        REQUIRE(problems.size() == 1);
        return problems.front();
    };
    CHECK(problem("learner.evaluation.every_units=300").suggestion == "every_updates");
    CHECK(problem("learner.evaluation.every_units=300").hint == R"(did you mean "every_updates"?)");
    CHECK(problem("horizon.units=6000").suggestion == "updates");
    CHECK(problem("learner.replicas=4").hint.find("replications") != std::string::npos);
    CHECK(problem("learner.target_pass_at_1=0.5").hint.find("millrace run") != std::string::npos);
}

TEST_CASE("overrides of a learn file") {
    CHECK(good("small", {"learner.optimizer.learning_rate=4e-4"}).learner.optimizer.learning_rate == 4e-4);
    CHECK(good("small", {"learner.objective.clip=none"}).learner.objective.clip_high > 1e9);
    const LearnFile other = good("small", {R"(learner.objective={"kind": "asymre"})", "trainers.batch=32", "seed=7"});
    CHECK(other.learner.objective.algorithm == Algorithm::asymre);
    CHECK(other.batch == 32);
    CHECK(other.seed == 7);
    // An object whose default has a kind is there to be changed, in a file that leaves it out too.
    CHECK(good("minimal", {"learner.objective.clip=0.1"}).learner.objective.clip_high == 0.1);
    CHECK(good("minimal", {"learner.warm_start.updates=7"}).learner.warm_start.updates == 7);
    CHECK(good("minimal", {"learner.objective.kind=asymre"}).learner.objective.algorithm == Algorithm::asymre);
    const auto misspelt = problems_with({"learner.optimiser.learning_rate=1e-3"});
    REQUIRE(misspelt.size() == 1);
    CHECK(misspelt[0].source == "--set learner.optimiser.learning_rate=1e-3");
    CHECK(misspelt[0].suggestion == "optimizer");
    const auto too_narrow = problems_with({"learner.model.context=9"});
    REQUIRE(too_narrow.size() == 1);
    CHECK(too_narrow[0].message.find("at least 10") != std::string::npos);
}

}  // namespace
}  // namespace millrace
