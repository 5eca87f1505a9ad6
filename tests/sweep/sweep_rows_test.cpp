#include "sim/sweep/sweep_rows.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "sim/engine/random.h"
#include "sim/scenario/diagnostics.h"

using namespace millrace;

namespace {

BlockRow row_with(std::vector<std::optional<double>> values) {
    BlockRow row;
    row.design = "0123456789abcdef";
    row.first_replication = 20;
    row.replications = static_cast<std::int64_t>(values.size());
    row.warmup_updates = 100;
    row.metrics["staleness/mean"] = std::move(values);
    row.undefined["last_use/mean"] = "no rollout was \"used\" twice";
    return row;
}

std::string message_of(const std::string& line) {
    try {
        parse_block_row(line);
    } catch (const RowError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("numbers in rows keep all their bits") {
    std::vector<std::optional<double>> values = {0.1,
                                                 -0.0,
                                                 5.0,
                                                 1e22,
                                                 9007199254740993.0,
                                                 std::nullopt,
                                                 std::numeric_limits<double>::denorm_min(),
                                                 std::numeric_limits<double>::max(),
                                                 std::numeric_limits<double>::min()};
    Draw draw(RandomStream(1, 0, Purpose::test_schedule), 0);
    while (values.size() < 3000) {
        const double value = std::bit_cast<double>(draw.bits());
        if (std::isfinite(value)) {
            values.emplace_back(value);
        }
    }
    const BlockRow row = row_with(values);
    const std::string line = block_row_json(row);
    CHECK(line.find('\n') == std::string::npos);
    const BlockRow back = parse_block_row(line + "\n");
    CHECK(back == row);  // compares -0.0 equal to 0.0, hence bits too
    const auto& read = back.metrics.at("staleness/mean");
    REQUIRE(read.size() == values.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        different += values[i].has_value() != read[i].has_value() ||
                     (values[i] && std::bit_cast<std::uint64_t>(*values[i]) != std::bit_cast<std::uint64_t>(*read[i]));
    }
    CHECK(different == 0);
    CHECK(block_row_json(back) == line);
}

TEST_CASE("a row reads as documented") {
    CHECK(block_row_json(row_with({1.5, std::nullopt})) ==
          R"({"design":"0123456789abcdef","first_replication":20,"replications":2,"warmup_updates":100,)"
          R"("metrics":{"staleness/mean":[1.5,null]},"undefined":{"last_use/mean":"no rollout was \"used\" twice"}})");
    BlockRow failed;
    failed.design = "0123456789abcdef";
    failed.replications = 5;
    failed.error = "the pipeline is stuck";
    CHECK(block_row_json(failed) == R"({"design":"0123456789abcdef","first_replication":0,"replications":5,)"
                                    R"("error":"the pipeline is stuck"})");
    CHECK(parse_block_row(block_row_json(failed)) == failed);
}

TEST_CASE("lines that are no rows are refused with the reason") {
    const std::string good = block_row_json(row_with({1.5, 2.5}));
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string line = good;
        line.replace(line.find(from), from.size(), to);
        return message_of(line);
    };
    CHECK(message_of(good).empty());
    CHECK(with("[1.5,2.5]", "[1.5]").find("1 values for 2 replications") != std::string::npos);
    CHECK(with("[1.5,2.5]", "[1.5,\"x\"]").find("expected numbers or null") != std::string::npos);
    CHECK(with("[1.5,2.5]", "[1.5,1e999]").find("beyond the range") != std::string::npos);
    CHECK(with("\"first_replication\":20", "\"first_replication\":-1").find("at least 0") != std::string::npos);
    CHECK(with("\"first_replication\":20", "\"first_replication\":2.5").find("a whole number") != std::string::npos);
    CHECK(with("\"first_replication\":20,", "").find("\"first_replication\" is missing") != std::string::npos);
    CHECK(with("\"warmup_updates\"", "\"warm_up\"").find("warmup_updates") != std::string::npos);
    CHECK(with("\"undefined\"", "\"host\":\"a\",\"undefined\"").find("no key \"host\"") != std::string::npos);
    CHECK(with("\"replications\":2", "\"replications\":2,\"replications\":2").find("replications") !=
          std::string::npos);
    CHECK(with("abcdef", "ABCDEF").find("16 hexadecimal digits") != std::string::npos);
    CHECK(with("{", "").size() > 0);
    CHECK(message_of("").size() > 0);
    CHECK(message_of("[]").find("expected an object") != std::string::npos);
}

TEST_CASE("rows that could not be read back are not written") {
    CHECK_THROWS_AS(block_row_json(row_with({std::nan("")})), std::logic_error);
    CHECK_THROWS_AS(block_row_json(row_with({})), std::logic_error);
    BlockRow row = row_with({1.0});
    row.error = "both";
    CHECK_THROWS_AS(block_row_json(row), std::logic_error);
    row = row_with({1.0});
    row.undefined["a/b"] = "two\nlines";
    CHECK_THROWS_AS(block_row_json(row), std::logic_error);
}

TEST_CASE("a file of rows knows its lines and its torn end") {
    const std::string line = block_row_json(row_with({1.5})) + "\n";
    const BlockRows two = read_block_rows(line + line, "runs.jsonl", TornLine::is_an_error);
    CHECK(two.rows.size() == 2);
    CHECK(two.whole_bytes == 2 * line.size());

    const std::string torn = line + line.substr(0, 30);
    const BlockRows one = read_block_rows(torn, "runs.jsonl", TornLine::is_dropped);
    CHECK(one.rows.size() == 1);
    CHECK(one.whole_bytes == line.size());
    CHECK_THROWS_AS(read_block_rows(torn, "runs.jsonl", TornLine::is_an_error), ScenarioError);

    try {
        read_block_rows(line + "{\"design\":3}\n", "runs.jsonl", TornLine::is_dropped);
        FAIL("a bad row was read");
    } catch (const ScenarioError& error) {
        CHECK(std::string(error.what()).starts_with("runs.jsonl:2:11: error: design: expected text, found 3"));
    }
}
