#include "sim/sweep/constraint.h"

#include <doctest/doctest.h>

#include <string>

#include "sim/scenario/defaults.h"
#include "sim/scenario/input_file.h"

namespace millrace {
namespace {

constexpr const char* scenario_text = R"({
    "name": "small",
    "horizon": {"updates": 200},
    "workers": {"count": 6, "slots": 8, "service": {"kind": "first_order", "gpu_s_per_rollout": 5.28}},
    "trainers": {"count": 2, "batch": 60, "service": {"kind": "fixed", "gpu_s_per_update": 60}},
    "store": {"kind": "replay_buffer", "capacity": 84, "sharded": true},
    "published": [{"metric": "replay/mean", "value": 1.78, "source": "here"}]
})";

const JsonNode& scenario() {
    static const JsonNode root = [] {
        Diagnostics diagnostics = diagnostics_of(scenario_text, "small.json", {});
        JsonNode document = parse_input(diagnostics, scenario_vocabulary());
        fill_scenario_defaults(document);
        diagnostics.throw_if_any();
        return document;
    }();
    return root;
}

bool holds(const std::string& text) {
    return Constraint(text).holds(scenario());
}

ConstraintError error_of(const std::string& text) {
    try {
        static_cast<void>(holds(text));
    } catch (const ConstraintError& error) {
        return error;
    }
    FAIL("no error in " << text);
    return {0, ""};
}

TEST_CASE("arithmetic binds as in mathematics, and equal operators from the left") {
    CHECK(holds("1 + 2 * 3 == 7"));
    CHECK(holds("(1 + 2) * 3 == 9"));
    CHECK(holds("10 - 4 - 3 == 3"));
    CHECK(holds("16 / 4 / 2 == 2"));
    CHECK(holds("17 % 5 * 2 == 4"));
    CHECK(holds("-7 % 5 == -2"));
    CHECK(holds("-2 * -3 == 6"));
    CHECK(holds("2 - -3 == 5"));
    CHECK(holds("--3 == 3"));
    CHECK(holds("7 / 2 == 3.5"));
    CHECK(holds("1.5e2 == 150"));
}

TEST_CASE("every comparison tells less, equal and more apart") {
    struct Comparison {
        std::string sign;
        bool less, equal, more;
    };
    for (const auto& [sign, less, equal, more] :
         {Comparison{"==", false, true, false}, Comparison{"!=", true, false, true},
          Comparison{"<", true, false, false}, Comparison{"<=", true, true, false}, Comparison{">", false, false, true},
          Comparison{">=", false, true, true}}) {
        CAPTURE(sign);
        CHECK(holds("1 " + sign + " 2") == less);
        CHECK(holds("2 " + sign + " 2") == equal);
        CHECK(holds("3 " + sign + " 2") == more);
    }
}

TEST_CASE("and, or and not have their truth tables, in words and in signs") {
    const char* const words[] = {"false", "true"};
    for (const int a : {0, 1}) {
        for (const int b : {0, 1}) {
            const std::string left = words[a];
            const std::string right = words[b];
            CHECK(holds(left + " and " + right) == (a == 1 && b == 1));
            CHECK(holds(left + " && " + right) == (a == 1 && b == 1));
            CHECK(holds(left + " or " + right) == (a == 1 || b == 1));
            CHECK(holds(left + "||" + right) == (a == 1 || b == 1));
        }
        CHECK(holds("not " + std::string(words[a])) == (a == 0));
        CHECK(holds("!" + std::string(words[a])) == (a == 0));
    }
    CHECK(holds("true or true and false"));
    CHECK_FALSE(holds("(true or true) and false"));
    CHECK(holds("not 1 == 2"));
    CHECK(holds("not false and true"));
    CHECK(holds("not not true"));
}

TEST_CASE("paths mean the values of the scenario, defaults included") {
    CHECK(holds("workers.count + trainers.count == 8"));
    CHECK(holds("workers.service.gpu_s_per_rollout * 60 == 316.8"));
    CHECK(holds("store.capacity >= trainers.batch"));
    CHECK(holds("store.sharded"));
    CHECK(holds("store.sharded == true"));
    CHECK(holds("store.kind == 'replay_buffer'"));
    CHECK(holds("store.kind != \"transfer_queue\""));
    CHECK(holds("published.0.value < 2"));
    // None of these is written in the file.
    CHECK(holds("groups.size == 1"));
    CHECK(holds("weight_sync.in_flight == 'between_rollouts'"));
    CHECK(holds("store.eviction.kind == 'fifo'"));
    CHECK(holds("horizon.warmup_updates == 'auto'"));
}

TEST_CASE("the right side counts only where the left side does not decide") {
    CHECK(holds("store.kind == 'replay_buffer' or store.order == 'fifo'"));
    CHECK_FALSE(holds("store.kind == 'transfer_queue' and store.order == 'fifo'"));
    CHECK(holds("true or 1 / 0 == 1"));
    CHECK(error_of("false or 1 / 0 == 1").offset == 11);
}

TEST_CASE("a mistake in the text is located and explained") {
    struct Mistake {
        const char* text;
        std::size_t offset;
        const char* says;
    };
    for (const Mistake& mistake : {
             Mistake{"", 0, "empty"},
             Mistake{"  ", 0, "empty"},
             Mistake{"workers.count = 8", 14, "not part"},
             Mistake{"workers.count == ", 17, "ends where a value is expected"},
             Mistake{"workers.count 8", 14, "expected an operator"},
             Mistake{"(workers.count == 8", 0, "not closed"},
             Mistake{"(workers.count 8)", 15, "expected an operator or )"},
             Mistake{"workers.count == 8)", 18, "without an opening one"},
             Mistake{"1 < 2 < 3", 6, "second comparison"},
             Mistake{"workers.count == 8 and", 22, "ends where"},
             Mistake{"and 1 == 1", 0, "expected a number"},
             Mistake{"store.kind == 'fifo", 14, "no closing quote"},
             Mistake{"8gpus == 8", 0, "not a number"},
             Mistake{"1.2.3 == 1", 0, "not a number"},
             Mistake{"1e999 > 1", 0, "beyond the range"},
             Mistake{"2 ^ 3 == 8", 2, "not part"},
             Mistake{"true & true", 5, "not part"},
             Mistake{"workers.count == @", 17, "not part"},
         }) {
        CAPTURE(std::string(mistake.text));
        const ConstraintError error = error_of(mistake.text);
        CHECK(error.offset == mistake.offset);
        CHECK(std::string(error.what()).find(mistake.says) != std::string::npos);
    }
    CHECK(error_of("workers.count = 8").hint.find("==") != std::string::npos);
}

TEST_CASE("a path that no scenario has is an error, with the one that was meant") {
    CHECK(error_of("1 < workers.cuont").offset == 12);
    CHECK(error_of("1 < workers.cuont").suggestion == "workers.count");
    CHECK(error_of("trainer.count == 1").suggestion == "trainers.count");
    CHECK(error_of("trainer.cuont == 1").suggestion == "trainers.count");
    CHECK(error_of("batch == 1").suggestion == "trainers.batch");
    // Even where it is not asked for.
    CHECK(error_of("true or workers.cuont == 1").offset == 16);
}

TEST_CASE("operands of the wrong type are located") {
    CHECK(error_of("workers.count + store.kind == 8").offset == 16);
    CHECK(error_of("(store.kind + 1) * 2 == 8").offset == 1);
    CHECK(error_of("workers.count + 1").offset == 0);
    CHECK(error_of("workers.count == 'six'").offset == 14);
    CHECK(error_of("store.sharded > 1").offset == 0);
    CHECK(error_of("not workers.count").offset == 4);
    CHECK(error_of("-store.kind == 1").offset == 1);
    CHECK(error_of("true and workers.count").offset == 9);
    CHECK(error_of("workers.service == 1").offset == 0);
    CHECK(error_of("published == 1").offset == 0);
    CHECK(error_of("1 == reward.servers").offset == 5);  // no reward here
    CHECK(error_of("workers.count % (trainers.count - 2) == 0").offset == 14);
    CHECK(error_of("1e300 * 1e300 > 1").offset == 6);
}

TEST_CASE("no text overflows the stack") {
    CHECK(holds(std::string(90, '(') + "1 == 1" + std::string(90, ')')));
    CHECK(error_of(std::string(101, '(') + "1 == 1").offset == 100);
    CHECK(error_of(std::string(101, '-') + "1 == 1").offset == 100);
    std::string sum = "0";
    for (int i = 0; i < 900; ++i) {
        sum += "+1";
    }
    CHECK(holds(sum + " == 900"));
    CHECK(error_of(sum + std::string(1000, ' ') + "== 900").offset == 2000);
}

}  // namespace
}  // namespace millrace
