#include "sim/sweep/sweep_growth.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "sim/sweep/rounds.h"
#include "sim/sweep/sweep_file.h"
#include "tests/scenario/corpus.h"

using namespace millrace;

namespace {

/// One family over sizes; its base is tests/scenario/corpus/good/minimal.json, with batches of 16.
Sweep sweep_over(const std::string& sizes, const std::string& rest, const std::string& more_axes = "") {
    const std::string text =
        R"({"name": "x", "families": [{"name": "f", "base": "../../good/minimal.json",
            "axes": [{"path": "store.capacity", "values": )" +
        sizes + "}" + more_axes + "]" + rest +
        R"(, "objectives": [{"metric": "compute/gamma_simulated", "goal": "minimize"},
                                                  {"metric": "staleness/mean", "goal": "maximize"}]})";
    return decode_sweep(text, (corpus::source_dir / "tests/scenario/corpus/sweep/good/test.json").string(), {});
}

/// A row in which a design of size N costs the logarithm of N and is worth it, up to `noise`.
BlockRow row_of(const Design& design, const ReplicationBlock& block, double noise = 0.0) {
    BlockRow row;
    row.design = design.id;
    row.first_replication = block.first_replication;
    row.replications = block.replications;
    const double size = std::stod(design.values.front().second);
    for (std::int64_t r = 0; r < block.replications; ++r) {
        const double deviation = noise * std::sin(size + 3.0 * static_cast<double>(block.first_replication + r));
        row.metrics["compute/gamma_simulated"].push_back(std::log(size) + deviation);
        row.metrics["staleness/mean"].push_back(std::log(size) - deviation);
    }
    return row;
}

/// Runs the sweep to its end and returns the number of rounds it took; the sweep grows.
int run(Sweep& sweep, RowCollection& rows, double noise = 0.0) {
    SweepRounds plan(sweep);
    int rounds = 0;
    while (const std::optional<Round> round = plan.open_round(rows)) {
        ++rounds;
        for (const ReplicationBlock& block : round->blocks) {
            rows.add(row_of(sweep.designs[block.design], block, noise), "test");
        }
    }
    return rounds;
}

std::vector<std::string> ids(const Sweep& sweep) {
    std::vector<std::string> all;
    for (const Design& design : sweep.designs) {
        all.push_back(design.id);
    }
    return all;
}

std::vector<double> sizes_added(const Sweep& sweep) {
    std::vector<double> sizes;
    for (const Design& design : sweep.designs) {
        if (design.refined) {
            sizes.push_back(std::stod(design.values.front().second));
        }
    }
    return sizes;
}

}  // namespace

TEST_CASE("the widest gap is halved until the number is reached, and gaps end up about as wide as each other") {
    Sweep sweep = sweep_over("[64, 128, 65536]", R"(}], "replications": 3, "refine": {"designs": 8})");
    RowCollection rows(sweep);
    CHECK(run(sweep, rows) >= 4);
    REQUIRE(sweep.designs.size() == 11);
    // From 128 to 65536 there are nine doublings.
    const std::vector<double> sizes = sizes_added(sweep);
    CHECK(sizes[0] == std::round(std::sqrt(128.0 * 65536.0)));
    std::set<double> all = {64.0, 128.0, 65536.0};
    all.insert(sizes.begin(), sizes.end());
    REQUIRE(all.size() == 11);
    double narrowest = 100.0;
    double widest = 0.0;
    for (auto size = std::next(all.begin()); std::next(size) != all.end(); ++size) {
        const double width = std::log2(*std::next(size) / *size);
        narrowest = std::min(narrowest, width);
        widest = std::max(widest, width);
    }
    CHECK(widest <= 2.6 * narrowest);
    // Each has its replications, as a design of the file.
    for (std::size_t i = 0; i < sweep.designs.size(); ++i) {
        REQUIRE(rows.find(i, 0) != nullptr);
        CHECK(rows.find(i, 0)->replications == 3);
        CHECK(sweep.designs[i].set.back() == "store.capacity=" + sweep.designs[i].values.front().second);
        CHECK(sweep.designs[i].scenario->pipeline.workers.count == 4);
    }
}

TEST_CASE("what is added follows from the first replications, in whatever order rows come and whatever came after") {
    const std::string rest = R"(}], "replications": {"least": 3, "most": 20, "budget": 90}, "refine": {"designs": 5})";
    Sweep sweep = sweep_over("[16, 64, 1024]", rest);
    RowCollection rows(sweep);
    run(sweep, rows, 0.4);
    CHECK(sweep.designs.size() == 8);
    std::int64_t replications = 0;
    std::vector<BlockRow> all;
    for (std::size_t i = 0; i < sweep.designs.size(); ++i) {
        for (const auto& [first, row] : rows.of(i)) {
            replications += row.replications;
            all.push_back(row);
        }
    }
    CHECK(replications > 3 * 8);
    CHECK(replications <= 90);

    // From rows that are all there at once, those of designs nobody knows yet first.
    std::reverse(all.begin(), all.end());
    Sweep again = sweep_over("[16, 64, 1024]", rest);
    RowCollection shuffled(again);
    for (const BlockRow& row : all) {
        shuffled.add(row, "test");
        shuffled.add(row, "test");  // files are read more than once
    }
    CHECK(shuffled.waiting() > 0);
    CHECK(grow(again, shuffled));
    CHECK(shuffled.waiting() == 0);
    CHECK(ids(again) == ids(sweep));
    CHECK(shuffled.text() == rows.text());
    // What else has been run does not matter: the first replications alone lead to the same designs.
    Sweep first = sweep_over("[16, 64, 1024]", rest);
    RowCollection least(first);
    for (const BlockRow& row : all) {
        if (row.first_replication == 0) {
            least.add(row, "test");
        }
    }
    CHECK(grow(first, least));
    CHECK(ids(first) == ids(sweep));

    // While a row is missing nothing is added that might be wrong.
    Sweep partial = sweep_over("[16, 64, 1024]", rest);
    RowCollection some(partial);
    for (const BlockRow& row : all) {
        if (row.design != partial.designs[1].id) {
            some.add(row, "test");
        }
    }
    CHECK_FALSE(grow(partial, some));
    CHECK(partial.designs.size() == 3);
    CHECK(some.waiting() > 0);
}

TEST_CASE("rows of somebody else's designs are refused when the sweep has all of its own") {
    Sweep sweep = sweep_over("[64, 1024]", R"(}], "replications": 2, "refine": {"designs": 1})");
    RowCollection rows(sweep);
    BlockRow foreign = row_of(sweep.designs[0], {0, 0, 2});
    foreign.design = "ffffffffffffffff";
    rows.add(foreign, "runs-7.jsonl");
    CHECK_THROWS_WITH(run(sweep, rows), doctest::Contains("runs-7.jsonl has a row of the design ffffffffffffffff"));
    CHECK(sweep.designs.size() == 3);
}

TEST_CASE("added designs satisfy the constraints, are possible, and stop where no gap can be bisected") {
    Sweep sweep = sweep_over("[16, 20]", R"(, "constraints": ["store.capacity % 2 == 0"]}],
                             "replications": 2, "refine": {"designs": 50})");
    RowCollection even(sweep);
    run(sweep, even);
    CHECK(sizes_added(sweep) == std::vector<double>{18.0});

    // A failed design is no end of a gap.
    Sweep failing = sweep_over("[16, 64, 256]", R"(}], "replications": 2, "refine": {"designs": 1})");
    RowCollection rows(failing);
    for (std::size_t i = 0; i < 3; ++i) {
        BlockRow row = row_of(failing.designs[i], {i, 0, 2});
        if (i == 2) {
            row.metrics.clear();
            row.error = "it is stuck";
        }
        rows.add(row, "test");
    }
    CHECK(grow(failing, rows));
    CHECK(sizes_added(failing) == std::vector<double>{32.0});
}
