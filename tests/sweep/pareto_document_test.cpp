#include "sim/sweep/pareto_document.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/scenario/diagnostics.h"

using namespace millrace;
using Json = nlohmann::json;

namespace {

std::string id(std::size_t number) {
    return std::string(15, '0') + static_cast<char>('a' + number);
}

/// Five designs: two on the front, one dominated, one impossible, one without a value of an objective.
Sweep small_sweep() {
    Sweep sweep;
    sweep.name = "small";
    sweep.objectives = {{"compute/gamma", true}, {"replay/mean", false}};
    sweep.replications = {4, 4, 0};
    for (std::size_t i = 0; i < 5; ++i) {
        Design design;
        design.id = id(i);
        design.family = i < 3 ? "buffer" : "no buffer";
        design.base = "base.json";
        design.values = {{"store.capacity", std::to_string(64 << (2 * i))}, {"store.kind", "\"replay_buffer\""}};
        design.set = {"store.capacity=" + design.values[0].second};
        sweep.designs.push_back(design);
    }
    sweep.designs[3].error = "a batch can never fill";
    return sweep;
}

BlockRow row(std::size_t design, std::int64_t first, std::vector<std::optional<double>> gamma,
             std::vector<std::optional<double>> replay) {
    BlockRow result;
    result.design = id(design);
    result.first_replication = first;
    result.replications = static_cast<std::int64_t>(gamma.size());
    result.metrics = {{"compute/gamma", std::move(gamma)}, {"replay/mean", std::move(replay)}};
    return result;
}

std::vector<BlockRow> small_rows() {
    BlockRow failed;
    failed.design = id(3);
    failed.replications = 4;
    failed.error = "a batch can never fill";
    std::vector<BlockRow> rows = {row(0, 0, {1.0, 1.0}, {2.0, 2.5}),
                                  row(0, 2, {1.0, 1.0}, {2.25, 2.25}),
                                  row(1, 0, {2.0, 2.0, 2.0, 2.0}, {6.0, 6.25, 6.5, 6.0}),
                                  row(2, 0, {2.5, 2.5, 2.5, 2.5}, {2.0, 2.5, 2.25, 2.25}),
                                  failed,
                                  row(4, 0, {0.5, 0.5, 0.5, 0.5}, {9.0, std::nullopt, 9.0, 9.0})};
    rows[5].undefined["replay/mean"] = "no rollout was generated after the warm-up";
    return rows;
}

RowCollection collection(const Sweep& sweep, const std::vector<BlockRow>& rows) {
    RowCollection result(sweep);
    for (const BlockRow& row : rows) {
        result.add(row, "merged.jsonl");
    }
    return result;
}

ParetoReport report_of(const Sweep& sweep, const std::vector<BlockRow>& rows, ParetoOptions options = {}) {
    return pareto_report(sweep, collect_records(sweep, collection(sweep, rows), "merged.jsonl"), options);
}

std::string complaint(const std::vector<BlockRow>& rows) {
    try {
        const Sweep sweep = small_sweep();
        collect_records(sweep, collection(sweep, rows), "merged.jsonl");
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("the document says of every design where it stands and why") {
    const Sweep sweep = small_sweep();
    ParetoOptions options;
    options.reference = {{3.0, 0.0}};
    const ParetoReport report = report_of(sweep, small_rows(), options);
    const Json json = Json::parse(pareto_json(sweep, "00000000000000ff", report));
    CHECK(json["sweep_hash"] == "00000000000000ff");
    CHECK(json["objectives"] == Json::parse(R"([{"metric":"compute/gamma","goal":"minimize"},
                                                {"metric":"replay/mean","goal":"maximize"}])"));
    CHECK(json["reference_point"] == Json::parse("[3.0, 0.0]"));
    // (3 - 1) x 2.25 and (3 - 2) x (6.1875 - 2.25)
    CHECK(json["hypervolume"]["value"].get<double>() == doctest::Approx(4.5 + 3.9375));
    CHECK(json["hypervolume"]["half_width"].get<double>() > 0.0);
    CHECK(json["families"] == Json::parse(R"(["buffer", "no buffer"])"));
    CHECK(json["family_hypervolumes"]["buffer"] == json["hypervolume"]);
    CHECK(json["family_hypervolumes"]["no buffer"]["half_width"].is_null());
    CHECK_FALSE(json["family_hypervolumes"]["no buffer"]["note"].get<std::string>().empty());

    const Json& designs = json["designs"];
    REQUIRE(designs.size() == 5);
    CHECK(designs[0]["membership"] == "in");  // cheaper for certain
    CHECK(designs[1]["membership"] == "in");
    CHECK(designs[2]["membership"] == "out");  // dearer than 0 for certain and no better; worse than 1 in all
    CHECK(designs[0]["on_front"] == true);
    CHECK(designs[2]["on_front"] == false);
    CHECK(designs[0]["replications"] == 4);
    CHECK(designs[0]["metrics"]["replay/mean"]["mean"] == 2.25);
    CHECK(designs[0]["values"] == Json::parse(R"({"store.capacity": 64, "store.kind": "replay_buffer"})"));
    CHECK(designs[0]["set"] == Json::parse(R"(["store.capacity=64"])"));
    CHECK(designs[0]["base"] == "base.json");
    CHECK(designs[0]["scenario"] == "frontier/" + id(0) + ".json");
    CHECK_FALSE(designs[2].contains("scenario"));
    CHECK(designs[3]["error"] == "a batch can never fill");
    CHECK_FALSE(designs[3].contains("membership"));
    CHECK(designs[4]["error"] ==
          "the objective replay/mean has no value in 1 of 4 replications: no rollout was generated after the warm-up");
    // A sweep that was put together by hand cannot make designs.
    CHECK(json["refinement"]["refused"][0]["reason"] == "the sweep has no families to make designs of");
}

TEST_CASE("the default reference lies beyond the worst of the fronts, also of what is maximized") {
    // Designs 0 and 1 are the front; design 2, far off it, has no part in this.
    const ParetoReport report = report_of(small_sweep(), small_rows());
    CHECK(report.reference[0] == doctest::Approx(2.0 + 0.1));
    CHECK(report.reference[1] == doctest::Approx(2.25 - 0.39375));
    ParetoOptions one;
    one.reference = {{1.0}};
    CHECK_THROWS_AS(report_of(small_sweep(), small_rows(), one), std::invalid_argument);
}

TEST_CASE("the order of rows and how they are cut into blocks changes nothing") {
    const Sweep sweep = small_sweep();
    std::vector<BlockRow> rows = small_rows();
    const std::string expected = pareto_json(sweep, "x", report_of(sweep, rows));
    std::reverse(rows.begin(), rows.end());
    rows.erase(rows.end() - 2, rows.end());
    rows.push_back(row(0, 0, {1.0, 1.0, 1.0, 1.0}, {2.0, 2.5, 2.25, 2.25}));
    CHECK(pareto_json(sweep, "x", report_of(sweep, rows)) == expected);
}

TEST_CASE("the table in CSV has one row per design") {
    const Sweep sweep = small_sweep();
    const std::string csv = pareto_csv(sweep, report_of(sweep, small_rows()));
    CHECK(
        csv.starts_with("design,family,refined,store.capacity,store.kind,replications,membership,on_front,error,"
                        "compute/gamma,compute/gamma:half_width,replay/mean,replay/mean:half_width\n" +
                        id(0) + ",buffer,false,64,replay_buffer,4,in,true,,1.0,0.0,2.25,"));
    CHECK(csv.find("\n" + id(3) + ",no buffer,false,4096,replay_buffer,0,,,a batch can never fill,,,,\n") !=
          std::string::npos);
    CHECK(std::count(csv.begin(), csv.end(), '\n') == 6);
}

TEST_CASE("rows that do not fit the sweep are refused") {
    std::vector<BlockRow> rows = small_rows();
    CHECK(complaint(rows).empty());
    rows[0].design = "ffffffffffffffff";
    CHECK(complaint(rows) == "merged.jsonl has a row of the design ffffffffffffffff, which the sweep has not");
    rows = small_rows();
    rows.erase(rows.begin());
    CHECK(complaint(rows).find("starts with replication 2 where 0 is next") != std::string::npos);
    rows = small_rows();
    rows[1].first_replication = 1;
    CHECK(complaint(rows).find("starts with replication 1 where 2 is next") != std::string::npos);
    rows = small_rows();
    rows.pop_back();
    const Sweep sweep = small_sweep();
    CHECK(report_of(sweep, rows).designs[4].error == "it was not run: go on with the sweep");
}

TEST_CASE("an optional metric keeps its place among replications") {
    std::vector<BlockRow> rows = {row(0, 0, {1.0, 1.0}, {2.0, 2.5}), row(0, 2, {1.0, 1.0}, {2.25, 2.25})};
    rows[1].metrics["last_use/mean"] = {7.0, 8.0};
    const Sweep sweep = small_sweep();
    const DesignRecord record = collect_records(sweep, collection(sweep, rows), "merged.jsonl")[0];
    CHECK(record.metrics.at("last_use/mean") ==
          std::vector<std::optional<double>>{std::nullopt, std::nullopt, 7.0, 8.0});
    std::swap(rows[0].metrics, rows[1].metrics);
    CHECK(collect_records(sweep, collection(sweep, rows), "merged.jsonl")[0].metrics.at("last_use/mean") ==
          std::vector<std::optional<double>>{7.0, 8.0, std::nullopt, std::nullopt});
}
