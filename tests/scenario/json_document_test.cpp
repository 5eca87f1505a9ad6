#include "sim/scenario/json_document.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace millrace {
namespace {

struct Parsed {
    JsonNode root;
    Diagnostics diagnostics;
    bool usable = false;
};

Parsed parse(const std::string& text) {
    Parsed parsed{{}, Diagnostics("f.json", text, {}), false};
    parsed.usable = parse_json(parsed.root, 0, 0, parsed.diagnostics);
    return parsed;
}

std::string position(const Parsed& parsed, Place place) {
    return parsed.diagnostics.describe(place);
}

/// The one problem of a text that is not accepted.
ScenarioProblem problem_of(const std::string& text) {
    const Parsed parsed = parse(text);
    try {
        parsed.diagnostics.throw_if_any();
    } catch (const ScenarioError& error) {
        REQUIRE(error.problems().size() == 1);
        return error.problems().front();
    }
    FAIL("accepted: " << text);
    return {};
}

/// "line:column" of the one problem.
std::string fault_position(const std::string& text) {
    const ScenarioProblem problem = problem_of(text);
    return std::to_string(problem.line) + ":" + std::to_string(problem.column);
}

TEST_CASE("every key and value knows its line and column") {
    const Parsed parsed = parse("{\n  \"a\" : [1, -2.5e3 ,\"x\\\"y\"],\n\t\"b\":{\"c\":true,\"d\":null}}");
    REQUIRE(parsed.usable);
    REQUIRE(parsed.diagnostics.empty());
    const JsonNode& root = parsed.root;
    CHECK(position(parsed, root.value_place) == "1:1");
    CHECK(position(parsed, find_path(root, "a")->key_place) == "2:3");
    CHECK(position(parsed, find_path(root, "a")->value_place) == "2:9");
    CHECK(position(parsed, find_path(root, "a.0")->value_place) == "2:10");
    CHECK(position(parsed, find_path(root, "a.1")->value_place) == "2:13");
    CHECK(position(parsed, find_path(root, "a.2")->value_place) == "2:21");
    CHECK(position(parsed, find_path(root, "b")->key_place) == "3:2");
    CHECK(position(parsed, find_path(root, "b.c")->key_place) == "3:7");
    CHECK(position(parsed, find_path(root, "b.c")->value_place) == "3:11");
    CHECK(position(parsed, find_path(root, "b.d")->value_place) == "3:20");
    CHECK(find_path(root, "a.0")->integer == 1);
    CHECK(find_path(root, "a.1")->real == -2500.0);
    CHECK(find_path(root, "a.1")->kind == JsonNode::Kind::real);
    CHECK(find_path(root, "a.2")->string == "x\"y");
    CHECK(find_path(root, "b.c")->boolean);
    CHECK(find_path(root, "a.3") == nullptr);
    CHECK(find_path(root, "a.-1") == nullptr);
    CHECK(find_path(root, "b.c.d") == nullptr);
}

TEST_CASE("separators inside strings, escapes and characters of several bytes do not shift positions") {
    const Parsed parsed = parse(R"({"a,:{": "]}\\", "gr\u00f6\u00dfe \ud83d\ude00": "größe 😀", "z": 1})");
    REQUIRE(parsed.usable);
    CHECK(parsed.root.children[0].key == "a,:{");
    CHECK(parsed.root.children[1].key == "größe 😀");
    CHECK(position(parsed, parsed.root.children[1].value_place) == "1:50");
    CHECK(position(parsed, parsed.root.find("z")->key_place) == "1:61");
}

TEST_CASE("empty objects and lists, nested and in a row") {
    const Parsed parsed = parse(R"([[], {}, [[]], {"a": {}}, 5])");
    REQUIRE(parsed.usable);
    CHECK(position(parsed, find_path(parsed.root, "1")->value_place) == "1:6");
    CHECK(position(parsed, find_path(parsed.root, "2.0")->value_place) == "1:11");
    CHECK(position(parsed, find_path(parsed.root, "3.a")->value_place) == "1:22");
    CHECK(position(parsed, find_path(parsed.root, "4")->value_place) == "1:27");
}

TEST_CASE("what RFC 8259 forbids is rejected where it stands") {
    CHECK(fault_position("") == "1:1");
    CHECK(fault_position(" \n ") == "2:2");
    CHECK(fault_position("{\"a\": 1} x") == "1:10");
    CHECK(fault_position("{\"a\": 1}}") == "1:9");
    CHECK(fault_position("{\"a\": 1,\n}") == "1:8");
    CHECK(fault_position("[1, 2,]") == "1:6");
    CHECK(fault_position("[1,, 2]") == "1:4");
    CHECK(fault_position("[1 2]") == "1:4");
    CHECK(fault_position("{\"a\" 1}") == "1:6");
    CHECK(fault_position("{a: 1}") == "1:2");
    CHECK(fault_position("[1, // one\n2]") == "1:5");
    CHECK(fault_position("[/* one */ 1]") == "1:2");
    CHECK(fault_position("[NaN]") == "1:2");
    CHECK(fault_position("[Infinity]") == "1:2");
    CHECK(fault_position("[-Infinity]") == "1:3");
    CHECK(fault_position("[+1]") == "1:2");
    CHECK(fault_position("[01]") == "1:3");
    CHECK(fault_position("[1.]") == "1:4");
    CHECK(fault_position("[.5]") == "1:2");
    CHECK(fault_position("['a']") == "1:2");
    CHECK(fault_position("[\"a\nb\"]") == "1:4");
    CHECK(fault_position("[\"\\q\"]") == "1:4");
    CHECK(fault_position("[tru]") == "1:5");
    CHECK(fault_position("[1") == "1:3");
    CHECK(fault_position("[\"\xff\"]") == "1:3");
    CHECK(problem_of("[1, 2,]").hint == "JSON allows no trailing comma: remove it");
    CHECK(problem_of("[1").hint == "the bracket opened at 1:1 is not closed");
}

TEST_CASE("numbers that would be changed in silence are rejected") {
    CHECK(parse("[9007199254740992, -9007199254740992]").diagnostics.empty());
    CHECK(problem_of("[9007199254740993]").key == "0");
    CHECK(fault_position("[-9007199254740993]") == "1:2");
    CHECK(fault_position("[0, 18446744073709551616]") == "1:5");
    CHECK(fault_position("[100000000000000000000000000000000000000000]") == "1:2");
    CHECK(fault_position("[1, 1e999]") == "1:5");
    CHECK(fault_position("{\"a\":-1e999}") == "1:6");
    CHECK(parse("[1e-999]").root.children[0].real == 0.0);
}

TEST_CASE("a duplicate key names both places and the path") {
    const ScenarioProblem problem = problem_of("{\"a\": [{\"b\": 1,\n  \"c\": {}, \"b\": {\"b\": 2}}]}");
    CHECK(problem.key == "a.0.b");
    CHECK(problem.line == 2);
    CHECK(problem.column == 12);
    CHECK(problem.message == "duplicate key, first given at 1:9");
    // Spelled with an escape it is the same key.
    CHECK(problem_of("{\"a\": 1, \"\\u0061\": 2}").message == "duplicate key, first given at 1:2");
}

TEST_CASE("a byte of a decoded string is found in the text, whatever escapes stand before it") {
    // Each string decodes to some bytes and an x.
    for (const char* const escapes : {"", "ab", R"(\")", R"(\\\n)", R"(\u0041)", R"(\u00e9)", R"(\u20ac)",
                                      R"(\ud83d\ude00)", "\xC3\xA9", R"(a\ud83d\ude00b\u20ac\t)"}) {
        const std::string before = escapes;
        CAPTURE(before);
        const Parsed parsed = parse("[1, \"" + before + "x\"]");
        const JsonNode& node = parsed.root.children.at(1);
        const Place place = place_in_string(parsed.diagnostics, node.value_place, node.string.size() - 1);
        CHECK(place.offset == 5 + before.size());
        // Behind the last byte stands the closing quote, and nothing lies beyond it.
        CHECK(place_in_string(parsed.diagnostics, node.value_place, node.string.size()).offset == 6 + before.size());
        CHECK(place_in_string(parsed.diagnostics, node.value_place, 1000).offset == 6 + before.size());
    }
}

TEST_CASE("a hundred nested levels are read and one more is not") {
    CHECK(parse(std::string(100, '[') + std::string(100, ']')).usable);
    CHECK(fault_position(std::string(101, '[') + std::string(101, ']')) == "1:101");
    CHECK(fault_position(std::string(200'000, '[')) == "1:101");
}

TEST_CASE("canonical text does not depend on spelling") {
    const std::string canonical = canonical_json(parse(R"({"b": 1.0, "a": [2.50, 1e2, -0.0, true, "\u0041"]})").root);
    CHECK(canonical == R"({"a":[2.5,100,0,true,"A"],"b":1})");
    CHECK(canonical_json(parse(canonical).root) == canonical);
    CHECK(canonical_json(parse("[0.1, 1e22, 123456789.123]").root) == "[0.1,1e+22,123456789.123]");
}

TEST_CASE("documents have the content that nlohmann's own DOM has") {
    const std::filesystem::path good = std::filesystem::path(MILLRACE_SOURCE_DIR) / "tests/scenario/corpus/good";
    int compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(good)) {
        std::ifstream file(entry.path());
        std::ostringstream text;
        text << file.rdbuf();
        // 5.0 and 5 are the same number, so compare values, not texts.
        CHECK(nlohmann::json::parse(canonical_json(parse(text.str()).root)) == nlohmann::json::parse(text.str()));
        ++compared;
    }
    CHECK(compared >= 15);
}

TEST_CASE("a report shows the line with a caret below the character, also in a long line") {
    CHECK(problem_of("{\n  \"größe\": 1,\t\"größe\": 2}").rendered ==
          "f.json:2:15: error: größe: duplicate key, first given at 2:3\n"
          "   2 |   \"größe\": 1, \"größe\": 2}\n"
          "     |               ^~~~~~~\n"
          "hint: remove one of the two\n");
    const std::string rendered =
        problem_of("[" + std::string(5000, ' ') + "nix" + std::string(5000, ' ') + "]").rendered;
    CHECK(rendered.size() < 500);
    CHECK(rendered.find("f.json:1:5003: error:") == 0);
}

TEST_CASE("slips are recognised, different words are not") {
    using namespace std::string_view_literals;
    constexpr std::string_view names[] = {"count"sv, "slots"sv, "service"sv, "rho"sv};
    CHECK(nearest_name("cuont", names) == "count");  // two neighbours swapped
    CHECK(nearest_name("coun", names) == "count");
    CHECK(nearest_name("Count", names) == "count");
    CHECK(nearest_name("sevrices", names) == "service");
    CHECK(nearest_name("batch", names).empty());
    CHECK(nearest_name("mu", names).empty());
    CHECK(nearest_name("", names).empty());
}

}  // namespace
}  // namespace millrace
