#include "tools/millrace/pareto_command.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/scenario/input_file.h"
#include "sim/sweep/pareto_document.h"
#include "sim/sweep/sweep_file.h"
#include "sim/sweep/sweep_growth.h"
#include "sim/sweep/sweep_rows.h"
#include "tools/millrace/counted.h"
#include "tools/millrace/pareto_table.h"
#include "tools/millrace/safe_file.h"
#include "tools/millrace/sweep_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

struct SweepFolder {
    std::string hash;
    Sweep sweep;
    std::vector<DesignRecord> records;
};

SweepFolder read_folder(const std::string& folder) {
    const std::string rows_file = merged_rows_file(folder);
    if (fs::exists(folder + "/sweep.json") && !fs::exists(rows_file)) {
        throw UsageError(folder + " has no merged.jsonl yet: let its sweep finish, or run millrace merge " + folder);
    }
    SweepFolder result;
    result.sweep = read_sweep_folder(folder);
    result.hash = sweep_hash(result.sweep);
    // From the rows themselves where they are: merged.jsonl may be older.
    RowCollection rows(result.sweep);
    read_rows(folder, rows);
    if (rows.size() == 0) {
        for (BlockRow& row : read_block_rows(read_input_file(rows_file), rows_file, TornLine::is_an_error).rows) {
            rows.add(std::move(row), rows_file);
        }
    }
    if (!grow(result.sweep, rows) && rows.waiting() > 0) {
        std::cerr << "Left out: " << counted(rows.waiting(), "row") << " of designs that follow from missing rows.\n";
    }
    result.records = collect_records(result.sweep, rows, rows_file);
    return result;
}

std::vector<double> reference_point(const std::string& text, const Sweep& sweep) {
    std::vector<double> point;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        double value = 0.0;
        const auto [stop, fault] = std::from_chars(text.data() + begin, text.data() + end, value);
        if (fault != std::errc{} || stop != text.data() + end || !std::isfinite(value)) {
            throw UsageError("--reference takes numbers with commas between, one per objective, not \"" + text + "\"");
        }
        point.push_back(value);
        begin = end + 1;
    }
    if (point.size() != sweep.objectives.size()) {
        std::string names;
        for (const SweepObjective& objective : sweep.objectives) {
            names += (names.empty() ? "" : ",") + objective.metric;
        }
        throw UsageError("--reference takes a value for each of " + names + ", not \"" + text + "\"");
    }
    return point;
}

void write_file(const std::string& path, const std::string& text) {
    SafeFile file(path);
    file.stream() << text;
    file.commit();
}

/// Runnable scenarios of the frontier, and no others.
void write_scenarios(const std::string& folder, const Sweep& sweep, const ParetoReport& report) {
    const fs::path frontier = fs::path(folder) / "frontier";
    std::error_code fault;
    fs::create_directories(frontier, fault);
    if (fault) {
        throw UsageError("cannot make the folder " + frontier.string() + ": " + fault.message());
    }
    std::vector<fs::path> old;
    for (const auto& entry : fs::directory_iterator(frontier)) {
        if (is_design_id(entry.path().stem().string()) && entry.path().extension() == ".json") {
            old.push_back(entry.path());
        }
    }
    for (const fs::path& path : old) {
        fs::remove(path);
    }
    for (std::size_t i = 0; i < sweep.designs.size(); ++i) {
        const Design& design = sweep.designs[i];
        if (is_of_interest(report.designs[i]) && design.scenario) {
            auto scenario = nlohmann::ordered_json::parse(design.scenario->resolved_json);
            // As its numbers were made: so many replications, and the warm-up that was found for the first of them.
            scenario["replications"] = report.designs[i].replications;
            scenario["horizon"]["warmup_updates"] = report.designs[i].warmup_updates;
            write_file(folder + "/" + frontier_file(design), scenario.dump(2) + "\n");
        }
    }
}

}  // namespace

int pareto_command(const ParetoCommandOptions& options) {
    const SweepFolder folder = read_folder(options.folder);
    ParetoOptions pareto;
    pareto.confidence = options.confidence;
    if (!options.reference.empty()) {
        pareto.reference = reference_point(options.reference, folder.sweep);
    }
    const ParetoReport report = pareto_report(folder.sweep, folder.records, pareto);
    if (std::none_of(report.designs.begin(), report.designs.end(),
                     [](const ParetoDesign& design) { return design.decision.compared; })) {
        std::cerr << "millrace: error: there is no frontier, for none of the " << report.designs.size()
                  << " designs of " << options.folder << " can be compared.\n"
                  << failures_text(folder.sweep, report);
        return exit_failed;
    }
    const std::string json = pareto_json(folder.sweep, folder.hash, report);
    write_scenarios(options.folder, folder.sweep, report);
    write_file(options.folder + "/pareto.json", json);
    if (options.format == "json") {
        std::cout << json;
    } else if (options.format == "csv") {
        std::cout << pareto_csv(folder.sweep, report);
    } else {
        std::cout << pareto_table(folder.sweep, report);
    }
    std::cout.flush();
    if (!std::cout) {
        throw std::runtime_error("could not write the frontier to standard output");
    }
    return exit_done;
}

}  // namespace millrace
