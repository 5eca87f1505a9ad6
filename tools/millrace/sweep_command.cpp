#include "tools/millrace/sweep_command.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <string>

#include "sim/sweep/row_collection.h"
#include "sim/sweep/sweep_file.h"
#include "sim/sweep/sweep_growth.h"
#include "sim/sweep/sweep_runner.h"
#include "tools/millrace/counted.h"
#include "tools/millrace/failure.h"
#include "tools/millrace/interrupt.h"
#include "tools/millrace/manifest.h"
#include "tools/millrace/ranks.h"
#include "tools/millrace/safe_file.h"
#include "tools/millrace/sweep_folder.h"
#include "tools/millrace/sweep_learning.h"
#include "tools/millrace/sweep_progress.h"

namespace millrace {
namespace {

bool has_learners(const Sweep& sweep) {
    return std::any_of(sweep.designs.begin(), sweep.designs.end(),
                       [](const Design& design) { return design.scenario && design.scenario->learner; });
}

/// merged.jsonl, and a line that says so. Returns the exit code: a sweep of which no design could be run has failed.
int merge_all(Sweep sweep, const std::string& folder) {
    RowCollection rows(sweep);
    read_rows(folder, rows);
    grow(sweep, rows);
    write_merged_rows(folder, rows);
    std::int64_t replications = 0;
    std::int64_t failed = 0;
    for (std::size_t design = 0; design < sweep.designs.size(); ++design) {
        bool fails = false;
        for (const auto& [first, row] : rows.of(design)) {
            replications += row.error.empty() ? row.replications : 0;
            fails = fails || !row.error.empty();
        }
        failed += fails ? 1 : 0;
    }
    std::cout << counted(sweep.designs.size(), "design") << ", " << counted(replications, "replication") << ": "
              << merged_rows_file(folder) << "\nThe frontier: millrace pareto " << folder << '\n';
    if (failed > 0) {
        std::cerr << failed << " of the " << counted(sweep.designs.size(), "design")
                  << " failed; the rows say why (look for \"error\").\n";
    }
    return failed < static_cast<std::int64_t>(sweep.designs.size()) ? exit_done : exit_failed;
}

std::string manifest_file(const SweepCommandOptions& options) {
    const std::string part =
        options.shards > 1 ? "-" + std::to_string(options.shard) + "-of-" + std::to_string(options.shards) : "";
    return options.folder + "/manifest" + part + ".json";
}

/// What is known before anything is simulated.
struct Preparation {
    Sweep sweep;
    std::string device;
};

Preparation prepare(const SweepCommandOptions& options, const SharedWork* work, const SweepLearning& learning,
                    bool speaks) {
    if (work != nullptr && options.shards > 1) {
        throw UsageError("--shard is for processes that do not know each other: those of mpirun share the work anyway");
    }
    Preparation prepared{load_sweep(options.sweep.file, options.sweep.overrides), "cpu"};
    if (speaks && !options.quiet) {
        for (const std::string& warning : prepared.sweep.warnings) {
            std::cerr << "Warning: " << warning << '\n';
        }
    }
    if (has_learners(prepared.sweep)) {
        prepared.device = learning.open_device(speaks && !options.quiet);
    }
    begin_sweep_folder(options.folder, prepared.sweep);
    return prepared;
}

int run(const SweepCommandOptions& options, const SharedWork* work) {
    const bool speaks = work == nullptr || work->rank == 0;
    const std::string started = time_of_day();
    SweepLearning learning(options.backend);
    Preparation prepared;
    std::exception_ptr problem;
    try {
        prepared = prepare(options, work, learning, speaks);
    } catch (...) {
        problem = std::current_exception();
    }
    if (work == nullptr && problem) {
        std::rethrow_exception(problem);
    }
    if (work != nullptr && work->any(problem != nullptr)) {
        // Most likely all ranks find the same fault; then one of them says it.
        const bool rank_0_says_it = work->any(speaks && problem);
        if (problem && (speaks || !rank_0_says_it)) {
            report_failure(problem);
        }
        // mpirun ends all ranks when the first one leaves with an error: not before it is said.
        work->any(false);
        return problem ? exit_code_of(problem) : exit_failed;
    }
    const Sweep& sweep = prepared.sweep;

    const auto start = std::chrono::steady_clock::now();
    SweepRunOptions running;
    running.jobs = options.jobs;
    running.interrupt = &interrupted();
    running.shard = options.shard;
    running.shards = options.shards;
    running.work = work;
    running.simulate = [&](const Scenario& scenario, const RunOptions& run) {
        return learning.simulate(scenario, run);
    };
    SweepOutcome outcome;
    {
        SweepProgressReport progress(speaks && !options.quiet);
        running.begun = [&](std::int64_t rows_there) { progress.begin(sweep, options.folder, rows_there); };
        running.progress = [&](const SweepProgress& now) { progress.show(now); };
        outcome = run_sweep(sweep, options.folder, running);
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;

    int exit_code = exit_done;
    if (outcome.interrupted) {
        if (speaks) {
            std::cerr << "Interrupted: " << outcome.open->missing() << " of "
                      << counted(outcome.open->blocks.size(), "block")
                      << " still to be run. The same command goes on from here.\n";
        }
        exit_code = exit_interrupted;
    } else if (outcome.open) {
        std::cout << "Shard " << options.shard << " of " << options.shards << ": "
                  << counted(outcome.replications, "replication") << ". Of the other shards " << outcome.open->missing()
                  << " of " << counted(outcome.open->blocks.size(), "block") << " missing"
                  << (outcome.open->number > 1 ? " in round " + std::to_string(outcome.open->number) : "") << ".\n";
    } else if (options.shards > 1) {
        std::cout << "Shard " << options.shard << " of " << options.shards << ": "
                  << counted(outcome.replications, "replication") << ". All shards are done: millrace merge "
                  << options.folder << '\n';
    } else if (speaks) {
        exit_code = merge_all(sweep, options.folder);
    }
    if (speaks) {
        nlohmann::ordered_json made = manifest(options.command_line, "Philox2x64-10, keyed by purpose", started);
        made["sweep_hash"] = sweep_hash(sweep);
        made["device"] = prepared.device;
        made["wall_s"] = wall.count();
        made["jobs"] = options.jobs;
        made["processes"] = work != nullptr ? work->ranks : 1;
        made["replications"] = outcome.replications;
        SafeFile file(manifest_file(options));
        file.stream() << made.dump(2) << '\n';
        file.commit();
    }
    return exit_code;
}

}  // namespace

int sweep_command(const SweepCommandOptions& options) {
    const InterruptGuard guard;
    if (!started_with_others()) {
        return run(options, nullptr);
    }
    Ranks ranks;
    try {
        return run(options, &ranks.work());
    } catch (...) {
        // The others would wait for this one forever.
        ranks.give_up(report_failure(std::current_exception(), " on rank " + std::to_string(ranks.work().rank)));
    }
}

}  // namespace millrace
