#include "sim/sweep/sweep_runner.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "sim/sweep/row_file.h"
#include "tests/pipeline/sample_pipelines.h"

using namespace millrace;
using namespace millrace_test;

namespace {

/// A folder that is gone with the test.
struct Folder {
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "millrace-sweep-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string file(const std::string& name) const { return path + "/" + name; }
    std::string path;
};

std::string text_of(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    REQUIRE(stream);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

void write_text(const std::string& path, const std::string& text) {
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    stream << text;
}

Design design_of(int number, const PipelineConfig& config, std::int64_t updates) {
    Design design;
    const std::string digits = std::to_string(number);
    design.id = std::string(16 - digits.size(), '0') + digits;
    design.family = "test";
    design.scenario.emplace();
    design.scenario->seed = 5;
    design.scenario->horizon.updates = updates;
    design.scenario->pipeline = config;
    return design;
}

/// All sample pipelines, of different lengths, two designs that fail: one in the middle of its run, one before it.
Sweep sample_sweep() {
    Sweep sweep;
    sweep.name = "samples";
    sweep.replications = {3, 3, 0};
    int number = 0;
    for (const NamedPipeline& sample : sample_pipelines()) {
        sweep.designs.push_back(design_of(number, sample.config, 40 + 10 * number));
        ++number;
    }
    PipelineConfig stuck = first_order_pipeline(5.28, 6, 2);
    stuck.store = TransferQueueConfig{.capacity = 120};
    stuck.admission = AdmissionConfig{.steps_ahead = 0, .rollouts_per_update = 4};
    sweep.designs.push_back(design_of(number++, stuck, 40));
    sweep.designs.push_back(design_of(number++, stuck, 40));
    sweep.designs.back().scenario.reset();
    sweep.designs.back().error = "workers.count: no\nworkers";
    return sweep;
}

std::string merged(const Sweep& sweep, const std::string& folder) {
    RowCollection rows(sweep);
    read_rows(folder, rows);
    return rows.text();
}

/// Of a sweep that nothing disturbed, with one thread.
std::string undisturbed(const Sweep& sweep) {
    const Folder folder;
    const SweepOutcome outcome = run_sweep(sweep, folder.path, {});
    CHECK_FALSE(outcome.open);
    CHECK(outcome.blocks == static_cast<std::int64_t>(sweep.designs.size()));
    return merged(sweep, folder.path);
}

}  // namespace

TEST_CASE("the rows of a sweep do not depend on threads and shards") {
    const Sweep sweep = sample_sweep();
    const std::string expected = undisturbed(sweep);
    for (const std::int64_t jobs : {2, 3}) {
        const Folder folder;
        CHECK_FALSE(run_sweep(sweep, folder.path, {.jobs = jobs}).open);
        CHECK(merged(sweep, folder.path) == expected);
        CHECK(std::filesystem::exists(folder.file("runs.jsonl")));
    }

    const Folder folder;
    std::int64_t missing = static_cast<std::int64_t>(sweep.designs.size());
    for (const std::int64_t shard : {3, 1, 5, 2, 4}) {
        const SweepOutcome outcome = run_sweep(sweep, folder.path, {.shard = shard, .shards = 5});
        missing -= outcome.blocks;
        CHECK((outcome.open ? static_cast<std::int64_t>(outcome.open->missing()) : 0) == missing);
    }
    CHECK(missing == 0);
    CHECK(std::filesystem::exists(folder.file("runs-3-of-5.jsonl")));
    CHECK(merged(sweep, folder.path) == expected);
    // Everything is there: another start, of any kind, has nothing to do.
    CHECK(run_sweep(sweep, folder.path, {.jobs = 2}).blocks == 0);
}

TEST_CASE("a design that fails has a row that says why, and the others run") {
    const Sweep sweep = sample_sweep();
    const Folder folder;
    run_sweep(sweep, folder.path, {.jobs = 2});
    RowCollection rows(sweep);
    read_rows(folder.path, rows);
    const std::size_t last = sweep.designs.size() - 1;
    CHECK(rows.find(last, 0)->error == "workers.count: no workers");
    CHECK(rows.find(last - 1, 0)->error.find("deadlock") != std::string::npos);
    for (std::size_t design = 0; design + 1 < last; ++design) {
        const BlockRow& row = *rows.find(design, 0);
        CHECK(row.error.empty());
        CHECK(row.metrics.at("compute/gamma_simulated").size() == 3);
        CHECK(row.warmup_updates >= 4);
    }
}

TEST_CASE("a sweep goes on behind the last whole row, wherever it was cut off") {
    const Sweep sweep = sample_sweep();
    const Folder whole;
    run_sweep(sweep, whole.path, {});
    const std::string text = text_of(whole.file("runs.jsonl"));
    const std::string expected = merged(sweep, whole.path);
    const std::size_t second = text.find('\n') + 1;
    for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, second - 1, second, second + 1, text.size() - 1}) {
        const Folder folder;
        write_text(folder.file("runs.jsonl"), text.substr(0, cut));
        const auto there = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(cut), '\n');
        const SweepOutcome outcome = run_sweep(sweep, folder.path, {});
        CHECK(outcome.blocks_before == there);
        CHECK(outcome.blocks == static_cast<std::int64_t>(sweep.designs.size()) - there);
        CHECK(text_of(folder.file("runs.jsonl")) == text);
        CHECK(merged(sweep, folder.path) == expected);
    }
}

TEST_CASE("a file with a line that is no row, or with rows of something else, is refused") {
    Sweep sweep = sample_sweep();
    const Folder folder;
    run_sweep(sweep, folder.path, {});
    const std::string text = text_of(folder.file("runs.jsonl"));

    write_text(folder.file("runs-2-of-2.jsonl"), text);  // the same rows again
    CHECK(merged(sweep, folder.path) == undisturbed(sweep));

    std::string other = text;
    other.replace(other.find("\"warmup_updates\":") + 17, 1, "9");
    write_text(folder.file("runs-2-of-2.jsonl"), other);
    CHECK_THROWS_WITH(run_sweep(sweep, folder.path, {}), doctest::Contains("another row"));

    write_text(folder.file("runs-2-of-2.jsonl"), "no row\n");
    CHECK_THROWS_WITH(run_sweep(sweep, folder.path, {}), doctest::Contains("runs-2-of-2.jsonl:1:"));

    std::filesystem::remove(folder.file("runs-2-of-2.jsonl"));
    sweep.designs.pop_back();
    CHECK_THROWS_WITH(run_sweep(sweep, folder.path, {}), doctest::Contains("which the sweep has not"));
    sweep = sample_sweep();
    sweep.replications = {4, 4, 0};
    CHECK_THROWS_WITH(run_sweep(sweep, folder.path, {}), doctest::Contains("another version"));
}

TEST_CASE("two processes never write one file") {
    const Folder folder;
    const Sweep sweep = sample_sweep();
    RowFile held(folder.file("runs.jsonl"));
    CHECK_THROWS_WITH(run_sweep(sweep, folder.path, {}), doctest::Contains("another process is writing it"));
}

TEST_CASE("a row that does not fit on the disk is taken away, and the sweep stops") {
    const Folder folder;
    const std::string path = folder.file("runs.jsonl");
    // In a process of its own, which is not allowed files of more than 100 bytes.
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{100, 100};
        setrlimit(RLIMIT_FSIZE, &limit);
        int refused = 0;
        {
            RowFile file(path);
            file.append(std::string(59, 'a'));
            try {
                file.append(std::string(59, 'b'));
            } catch (const std::runtime_error&) {
                ++refused;
            }
            file.append(std::string(29, 'c'));  // fits
        }
        _exit(refused);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 1);
    CHECK(text_of(path) == std::string(59, 'a') + "\n" + std::string(29, 'c') + "\n");
}

TEST_CASE("an interrupt gives up what is in progress and keeps what is done") {
    const Sweep sweep = sample_sweep();
    const Folder folder;
    std::atomic<bool> interrupt{false};
    SweepRunOptions options;
    options.jobs = 2;
    options.interrupt = &interrupt;
    std::atomic<int> begun{0};
    options.simulate = [&](const Scenario& scenario, const RunOptions& run) {
        if (++begun == 5) {
            interrupt = true;
        }
        return run_replications(scenario, run);
    };
    const SweepOutcome outcome = run_sweep(sweep, folder.path, options);
    CHECK(outcome.interrupted);
    REQUIRE(outcome.open);
    CHECK(outcome.blocks >= 3);
    CHECK(outcome.blocks <= 4);
    CHECK_FALSE(run_sweep(sweep, folder.path, {}).open);
    CHECK(merged(sweep, folder.path) == undisturbed(sweep));
}

TEST_CASE("what is not the design's fault ends the sweep") {
    const Sweep sweep = sample_sweep();
    const Folder folder;
    SweepRunOptions options;
    options.jobs = 2;
    std::atomic<int> begun{0};
    options.simulate = [&](const Scenario& scenario, const RunOptions& run) -> RunResult {
        if (++begun == 3) {
            throw std::runtime_error("the device is gone");
        }
        return run_replications(scenario, run);
    };
    CHECK_THROWS_WITH(run_sweep(sweep, folder.path, options), "the device is gone");
    CHECK(begun <= 4);
    CHECK_FALSE(run_sweep(sweep, folder.path, {}).open);
    CHECK(merged(sweep, folder.path) == undisturbed(sweep));
}

TEST_CASE("a design with a learner has one row per replication, and all have the same warm-up") {
    Sweep sweep;
    sweep.replications = {3, 3, 0};
    sweep.designs.push_back(design_of(1, first_order_pipeline(5.28, 5, 3), 60));
    sweep.designs.push_back(design_of(2, first_order_pipeline(5.28, 5, 3), 60));
    sweep.designs[0].scenario->learner.emplace();
    std::atomic<int> learnt{0};
    SweepRunOptions options;
    options.simulate = [&](const Scenario& scenario, const RunOptions& run) {
        RunResult result = run_replications(scenario, run);
        if (scenario.learner) {
            ++learnt;
            // the one in the middle never gets there
            result.samples["learner/compute_to_target"] = {run.first_replication == 1
                                                               ? std::numeric_limits<double>::infinity()
                                                               : 100.0 + static_cast<double>(run.first_replication)};
            if (run.first_replication == 1) {
                result.undefined["learner/compute_to_target"] = "never";
            }
        }
        return result;
    };
    const Folder folder;
    CHECK_FALSE(run_sweep(sweep, folder.path, options).open);
    CHECK(learnt == 3);
    RowCollection rows(sweep);
    read_rows(folder.path, rows);
    const BlockRow& timing = *rows.find(1, 0);
    CHECK(timing.replications == 3);
    for (std::size_t r = 0; r < 3; ++r) {
        const BlockRow& row = *rows.find(0, static_cast<std::int64_t>(r));
        CHECK(row.replications == 1);
        CHECK(row.warmup_updates == timing.warmup_updates);
        // The timeline is that of the same design without a learner.
        for (const char* key : {"compute/gamma_simulated", "staleness/mean", "time/wall_s"}) {
            CHECK(row.metrics.at(key).front() == timing.metrics.at(key)[r]);
        }
        CHECK(row.metrics.at("learner/compute_to_target").front() ==
              (r == 1 ? std::nullopt : std::optional(100.0 + static_cast<double>(r))));
        CHECK(row.undefined.contains("learner/compute_to_target") == (r == 1));
    }
}

TEST_CASE("replications that follow from the rows so far are the same for threads and shards") {
    Sweep sweep = sample_sweep();
    sweep.objectives = {{"compute/gamma_simulated", true}, {"staleness/mean", true}};
    const auto first_round = static_cast<std::int64_t>(sweep.designs.size()) * 3;
    sweep.replications = {3, 20, first_round + 60};
    const Folder alone;
    const SweepOutcome outcome = run_sweep(sweep, alone.path, {});
    CHECK_FALSE(outcome.open);
    CHECK(outcome.replications > first_round);
    CHECK(outcome.replications - 3 <= sweep.replications.budget);  // nobody simulates those of the impossible design
    const std::string expected = merged(sweep, alone.path);

    const Folder threads;
    CHECK_FALSE(run_sweep(sweep, threads.path, {.jobs = 3}).open);
    CHECK(merged(sweep, threads.path) == expected);

    // A job array: started as a whole again and again until nothing is left.
    const Folder shards;
    int starts = 0;
    for (bool open = true; open; ++starts) {
        REQUIRE(starts < 40);
        for (const std::int64_t shard : {2, 3, 1}) {
            open = run_sweep(sweep, shards.path, {.shard = shard, .shards = 3}).open.has_value();
        }
    }
    CHECK(starts > 1);
    CHECK(merged(sweep, shards.path) == expected);

    // Cut off in the middle of some round.
    const std::string text = text_of(alone.file("runs.jsonl"));
    for (const double share : {0.5, 0.9, 0.97}) {
        const Folder resumed;
        write_text(resumed.file("runs.jsonl"),
                   text.substr(0, static_cast<std::size_t>(share * static_cast<double>(text.size()))));
        CHECK_FALSE(run_sweep(sweep, resumed.path, {.jobs = 2}).open);
        CHECK(merged(sweep, resumed.path) == expected);
    }

    // The later replications of a design are those of one long run of it, warm-up included.
    RowCollection rows(sweep);
    read_rows(alone.path, rows);
    std::size_t more = 0;
    for (std::size_t design = 0; design < sweep.designs.size(); ++design) {
        if (rows.of(design).size() < 2) {
            continue;
        }
        ++more;
        Scenario scenario = *sweep.designs[design].scenario;
        scenario.horizon.warmup_updates = rows.find(design, 0)->warmup_updates;
        scenario.replications = rows.of(design).rbegin()->first + rows.of(design).rbegin()->second.replications;
        const RunResult whole = run_replications(scenario, {});
        for (const auto& [first, row] : rows.of(design)) {
            for (const auto& [key, values] : row.metrics) {
                for (std::size_t i = 0; i < values.size(); ++i) {
                    const double value = whole.samples.at(key)[static_cast<std::size_t>(first) + i];
                    CHECK((values[i] ? *values[i] == value : std::isnan(value)));
                }
            }
        }
    }
    CHECK(more >= 2);
}

TEST_CASE("a budget that covers the first replications of the possible designs is enough") {
    Sweep sweep = sample_sweep();
    sweep.objectives = {{"compute/gamma_simulated", true}, {"staleness/mean", true}};
    const auto possible = static_cast<std::int64_t>(sweep.designs.size()) - 1;
    sweep.replications = {2, 20, 2 * possible};
    const Folder folder;
    CHECK_FALSE(run_sweep(sweep, folder.path, {}).open);
    RowCollection rows(sweep);
    read_rows(folder.path, rows);
    CHECK(rows.size() == sweep.designs.size());
}

TEST_CASE("every block is of one shard, and long designs come first") {
    Sweep sweep = sample_sweep();
    RowCollection rows(sweep);
    const std::optional<Round> round = SweepRounds(sweep).open_round(rows);
    REQUIRE(round);
    CHECK(round->missing() == sweep.designs.size());
    double before = std::numeric_limits<double>::infinity();
    std::set<std::size_t> designs;
    for (const ReplicationBlock& block : round->blocks) {
        const auto& scenario = sweep.designs[block.design].scenario;
        const double cost = scenario ? expected_cost(*scenario, block.replications) : 0.0;
        CHECK(cost <= before);
        before = cost;
        designs.insert(block.design);
    }
    CHECK(designs.size() == sweep.designs.size());
    for (std::size_t place = 0; place < round->blocks.size(); ++place) {
        int owners = 0;
        for (std::int64_t shard = 1; shard <= 4; ++shard) {
            owners += is_of_shard(place, shard, 4) ? 1 : 0;
        }
        CHECK(owners == 1);
    }
}
