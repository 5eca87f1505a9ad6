#include "sim/scenario/overrides.h"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

#include "sim/scenario/decode.h"

namespace millrace {
namespace {

constexpr std::string_view base = R"({
    "name": "base",
    "horizon": {"updates": 200},
    "workers": {"count": 4, "slots": 8, "service": {"kind": "first_order", "gpu_s_per_rollout": 5}},
    "trainers": {"count": 2, "batch": 16, "service": {"kind": "fixed", "gpu_s_per_update": 60}},
    "store": {"kind": "replay_buffer", "capacity": 64},
    "published": [{"metric": "replay/mean", "value": 2, "source": "a"}]
})";

Scenario with(const std::vector<std::string>& overrides) {
    return decode_scenario(base, "base.json", overrides);
}

std::vector<ScenarioProblem> problems_with(const std::vector<std::string>& overrides) {
    try {
        with(overrides);
    } catch (const ScenarioError& error) {
        return error.problems();
    }
    FAIL("accepted");
    return {};
}

ScenarioProblem problem_with(const std::vector<std::string>& overrides) {
    const std::vector<ScenarioProblem> problems = problems_with(overrides);
    REQUIRE(problems.size() == 1);
    return problems.front();
}

TEST_CASE("an override changes what it names and nothing else") {
    const Scenario plain = with({});
    const Scenario changed = with({"workers.count=7"});
    CHECK(plain.pipeline.workers.count == 4);
    CHECK(changed.pipeline.workers.count == 7);
    CHECK(changed.pipeline.trainers.count == plain.pipeline.trainers.count);
    CHECK(with({"workers.count=4"}).resolved_json == plain.resolved_json);
}

TEST_CASE("the value is JSON, or else a string") {
    CHECK(with({"name=five three"}).name == "five three");
    CHECK(with({"name=\"7\""}).name == "7");
    CHECK(with({"name=a=b"}).name == "a=b");
    CHECK(with({"description="}).description.empty());
    CHECK(with({"horizon.warmup_updates=auto"}).horizon.warmup_updates == std::nullopt);
    CHECK(with({"horizon.warmup_updates=50"}).horizon.warmup_updates == 50);
    CHECK(with({R"(store={"kind": "transfer_queue", "capacity": 32})"}).pipeline.store.index() == 0);
    CHECK(with({"workers.service.gpu_s_per_rollout=2.5"}).resolved_json.find("\"gpu_s_per_rollout\":2.5") !=
          std::string::npos);
}

TEST_CASE("keys that the file lacks, and the objects around them, are made") {
    CHECK(with({"groups.size=8"}).pipeline.groups.size == 8);
    CHECK(with({"reward.servers=3"}).pipeline.reward->servers == 3);
    CHECK(with({"store.eviction.kind=positive_bias", "store.eviction.delta=0.5"}).pipeline.store.index() == 1);
    const Scenario bucket = with({"admission.kind=token_bucket", "admission.steps_ahead=1"});
    CHECK(bucket.pipeline.admission->rollouts_per_update == 16);
}

TEST_CASE("a list's elements go by number") {
    CHECK(with({"published.0.value=3"}).published.front().value == 3.0);
    CHECK(with({"published=[]"}).published.empty());
    CHECK(problem_with({"published.1.value=3"}).key == "published.1");
    CHECK(problem_with({"published.x=3"}).key == "published.x");
    CHECK(problem_with({"published.-1=3"}).key == "published.-1");
}

TEST_CASE("the last of several overrides of a key counts") {
    CHECK(with({"workers.count=7", "workers.count=9"}).pipeline.workers.count == 9);
}

TEST_CASE("an override repairs a file") {
    const std::string broken = R"({"name": "", "horizon": {"updates": 200},
        "workers": {"count": 4, "slots": 8, "service": {"kind": "first_order", "gpu_s_per_rollout": 5}},
        "trainers": {"count": 2, "batch": 16, "service": {"kind": "fixed", "gpu_s_per_update": 60}},
        "store": {"kind": "replay_buffer", "capacity": 64}})";
    CHECK_THROWS_AS(decode_scenario(broken, "broken.json", {}), ScenarioError);
    CHECK(decode_scenario(broken, "broken.json", {"name=repaired"}).name == "repaired");
}

TEST_CASE("an error names the override and points into it") {
    const ScenarioProblem unknown = problem_with({"workers.cuont=3"});
    CHECK(unknown.source == "--set workers.cuont=3");
    CHECK(unknown.key == "workers.cuont");
    CHECK(unknown.suggestion == "count");
    CHECK(unknown.rendered ==
          "--set workers.cuont=3: error: workers.cuont: unknown key\n"
          "   1 | workers.cuont=3\n"
          "     |         ^~~~~\n"
          "hint: did you mean \"count\"?\n");

    const ScenarioProblem wrong = problem_with({"workers.count=3.0"});
    CHECK(wrong.column == 15);
    CHECK(wrong.hint == "write 3");

    const ScenarioProblem inside = problem_with({R"(store={"kind": "replay_buffer", "capcity": 64})"});
    CHECK(inside.key == "store.capcity");
    CHECK(inside.column == 33);
    CHECK(inside.suggestion == "capacity");

    const ScenarioProblem missing = problem_with({R"(noise={"rho": 0})"});
    CHECK(missing.key == "noise.sigma2");
    CHECK(missing.source == R"(--set noise={"rho": 0})");

    CHECK(problem_with({R"(reward={"servers": 3, "servers": 4})"}).key == "reward.servers");
    CHECK(problem_with({"replications=9007199254740993"}).key == "replications");
    CHECK(problem_with({"replications=1e999"}).key == "replications");
    CHECK(problem_with({"seed=-1"}).key == "seed");
    CHECK(problem_with({"workers.length=null"}).key == "workers.length");
}

TEST_CASE("an override that contradicts the file is blamed, not the file") {
    const ScenarioProblem problem = problem_with({"store.kind=transfer_queue", "store.capacity=15"});
    CHECK(problem.key == "store.capacity");
    CHECK(problem.source == "--set store.capacity=15");
}

TEST_CASE("a malformed override is an error") {
    for (const char* malformed : {"workers.count", "", "=3", ".=3", "workers..count=3", ".workers=3", "workers.=3"}) {
        CAPTURE(malformed);
        CHECK(problem_with({malformed}).source == std::string("--set ") + malformed);
    }
    CHECK(problem_with({"workers.count.value=3"}).message == "workers.count is 4, which has no member \"value\"");
    CHECK(problem_with({"name=\xff"}).message == "this --set argument is not valid UTF-8");
}

TEST_CASE("errors of the file and of every override come in one report, in this order") {
    const std::vector<ScenarioProblem> problems =
        problems_with({"workers.count=-1", R"(workers.service={"kind": "step", "base_s": 1})", "groups.size=0"});
    REQUIRE(problems.size() == 3);
    CHECK(problems[0].key == "workers.length");
    CHECK(problems[0].source == "base.json");
    CHECK(problems[1].key == "workers.count");
    CHECK(problems[2].key == "groups.size");
}

}  // namespace
}  // namespace millrace
