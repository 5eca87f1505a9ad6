#include "tools/millrace/run_command.h"

#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "model/warm_start.h"
#include "sim/run/replications.h"
#include "sim/run/result_document.h"
#include "sim/scenario/decode.h"
#include "tools/millrace/checkpoint_folder.h"
#include "tools/millrace/counted.h"
#include "tools/millrace/interrupt.h"
#include "tools/millrace/manifest.h"
#include "tools/millrace/pipeline_learning.h"
#include "tools/millrace/progress_line.h"
#include "tools/millrace/result_files.h"
#include "tools/millrace/run_table.h"
#include "tools/millrace/safe_file.h"

namespace millrace {

namespace {

/// The curve is written as it comes, so nothing else may go to its file, under whatever spelling of its name.
void check_curve_file(const RunCommandOptions& options) {
    if (options.curve.empty()) {
        return;
    }
    const auto place = [](const std::string& name) {
        return std::filesystem::weakly_canonical(std::filesystem::absolute(name));
    };
    const std::string manifest = options.output.empty() ? "" : options.output + ".manifest.json";
    for (const std::string& other : {options.output, manifest, options.steps}) {
        if (!other.empty() && other != "-" && place(other) == place(options.curve)) {
            throw UsageError("the curve needs a file of its own, not " + options.curve);
        }
    }
    ResultFiles("", options.curve, options.scenario.file, {"the scenario", "the curve"});
}

}  // namespace

int run_command(const RunCommandOptions& options) {
    const Scenario scenario = load_scenario(options.scenario.file, options.scenario.overrides);
    ResultFiles files(options.output, options.steps, options.scenario.file, {"the scenario", "the step log"});
    const auto steps = options.steps.empty() ? nullptr : std::make_unique<SafeFile>(options.steps);

    if (!options.curve.empty() && !scenario.learner) {
        throw UsageError("--curve is for scenarios with a learner: this one has none");
    }
    check_curve_file(options);
    if (options.resume && options.checkpoint.empty()) {
        throw UsageError("--resume needs --checkpoint: the folder of the run to go on with");
    }
    if (!options.checkpoint.empty() && !scenario.learner) {
        throw UsageError("--checkpoint is for scenarios with a learner: this one has none");
    }
    std::optional<CheckpointFolder> folder;
    if (!options.checkpoint.empty()) {
        folder.emplace(options.checkpoint, options.resume, scenario.resolved_json);
    }
    const std::string how_to_go_on = folder ? how_to_resume(options.checkpoint) : "";

    const std::string started = time_of_day();
    const auto start = std::chrono::steady_clock::now();
    RunResult result;
    std::optional<PipelineLearning> learning;
    try {
        const InterruptGuard guard;
        if (scenario.learner) {
            learning.emplace(scenario, options.backend, options.jobs, options.curve, folder ? &*folder : nullptr);
            if (!learning->remark().empty() && !options.quiet) {
                std::cerr << learning->remark() << '\n';
            }
        }
        ProgressLine progress(learning ? "learning" : "simulating", !options.quiet);
        RunOptions run;
        run.jobs = options.jobs;
        run.interrupt = &interrupted();
        run.learners_stop = folder.has_value();
        run.progress = [&](double share) { progress.show(share); };
        run.steps = steps ? &steps->stream() : nullptr;
        if (learning) {
            run.make_learner = [&](std::int64_t replication) { return learning->make(replication); };
        }
        result = run_replications(scenario, run);
        if (learning) {
            learning->finish(result);
        }
    } catch (const WarmStartStopped&) {
        std::cerr << "Interrupted during the warm start: there is nothing to report.\n" << how_to_go_on;
        return exit_interrupted;
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;

    if (result.interrupted && result.replications_done == 0) {
        std::cerr << "Interrupted before any replication was complete: there is nothing to report.\n" << how_to_go_on;
        return exit_interrupted;
    }

    nlohmann::ordered_json document = result_document(scenario, result);
    if (learning) {
        document["learner"] = learning->document();
    }
    const std::string json = document.dump(2) + "\n";
    const std::string format = options.output == "-" ? "json" : options.format;
    if (format == "json") {
        std::cout << json;
    } else if (format == "csv") {
        std::cout << result_csv(scenario, result);
    } else {
        std::cout << run_table(scenario, result, options.changes_model) << (learning ? learning->table() : "");
    }
    nlohmann::ordered_json made = manifest(options.command_line, "Philox2x64-10, keyed by purpose", started);
    made["wall_s"] = wall.count();
    made["jobs"] = options.jobs;
    made["events"] = result.events;
    made["device"] = learning ? learning->backend_name() : "cpu";
    files.write(json, made);
    if (steps) {
        steps->commit();
    }
    if (result.interrupted) {
        std::cerr << "Interrupted: the result holds " << counted(result.replications_done, "complete replication")
                  << ".\n"
                  << how_to_go_on;
    }
    std::cout.flush();
    if (!std::cout) {
        throw std::runtime_error("could not write the result to standard output");
    }
    return result.interrupted ? exit_interrupted : exit_done;
}

}  // namespace millrace
