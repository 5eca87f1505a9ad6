#include "tools/millrace/plan_command.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "sim/plan/plan.h"
#include "sim/plan/plan_simulation.h"
#include "tools/millrace/interrupt.h"
#include "tools/millrace/plan_report.h"
#include "tools/millrace/safe_file.h"

namespace millrace {
namespace {

PlanQuestion question_of(const PlanCommandOptions& options, const Calibration& calibration) {
    PlanQuestion question;
    question.gpus = options.gpus;
    question.at_most = options.at_most;
    question.objective = objective_of(options.minimize);
    question.max_staleness = options.max_staleness;
    question.max_staleness_p99 = options.max_staleness_p99;
    question.seed = options.seed;
    question.grid = default_plan_grid(calibration.measured.pipeline.trainers.batch);
    if (options.store == "transfer_queue") {
        question.grid.capacities.clear();
    } else if (options.store == "replay_buffer") {
        question.grid.steps_ahead.clear();
    }
    return question;
}

/// The files of --out, opened before any work is done.
struct PlanFiles {
    std::unique_ptr<SafeFile> scenario;
    std::unique_ptr<SafeFile> plan;

    PlanFiles(const std::string& folder, const std::string& input) {
        if (folder.empty()) {
            return;
        }
        std::error_code failed;
        for (const char* name : {"recommended.json", "plan.json"}) {
            if (std::filesystem::equivalent(std::filesystem::path(folder) / name, input, failed)) {
                throw UsageError("writing " + std::string(name) + " into " + folder +
                                 " would overwrite the calibration");
            }
        }
        std::filesystem::create_directories(folder, failed);
        if (failed) {
            throw UsageError("cannot make the folder " + folder + ": " + failed.message());
        }
        scenario = std::make_unique<SafeFile>((std::filesystem::path(folder) / "recommended.json").string());
        plan = std::make_unique<SafeFile>((std::filesystem::path(folder) / "plan.json").string());
    }

    void write(const std::string& scenario_text, const std::string& plan_text) const {
        if (!plan) {
            return;
        }
        plan->stream() << plan_text;
        plan->commit();
        if (!scenario_text.empty()) {
            scenario->stream() << scenario_text;
            scenario->commit();
        }
    }
};

}  // namespace

int plan_command(const PlanCommandOptions& options) {
    const Calibration calibration = load_calibration(options.calibration.file, options.calibration.overrides);
    const PlanQuestion question = question_of(options, calibration);
    const PlanFiles files(options.out, options.calibration.file);
    PlanControl control;
    control.jobs = options.jobs;
    control.interrupt = &interrupted();
    if (!options.quiet) {
        control.progress = [](const std::string& stage) { std::cerr << stage << '\n'; };
    }

    Plan plan;
    PlanReport report{calibration, question, plan, "", {}, ""};
    try {
        const InterruptGuard guard;
        plan = make_plan(calibration, question, default_plan_effort(calibration.measured.pipeline.trainers.batch),
                         plan_simulation(control.interrupt), control);
        if (plan.recommended) {
            const PlanEvaluation& best = *plan.recommended;
            const auto replications = static_cast<std::int64_t>(best.runs.size());
            report.scenario = plan_scenario_file(calibration, best.design, best.horizon, question.seed, replications);
            const Scenario scenario =
                plan_scenario(calibration, best.design, best.horizon, question.seed, replications);
            report.binds = what_binds(scenario);
            report.variance = variance_parts(scenario, control);
        }
    } catch (const PlanInterrupted&) {
        std::cerr << "Interrupted before the search was over: there is nothing to report.\n";
        return exit_interrupted;
    } catch (const std::invalid_argument& error) {
        throw UsageError(error.what());
    }

    const std::string json = plan_document(report).dump(2) + "\n";
    std::cout << (options.format == "json" ? json : plan_table(report)) << std::flush;
    files.write(report.scenario, json);
    if (!std::cout) {
        throw std::runtime_error("could not write the plan to standard output");
    }
    return plan.recommended ? exit_done : exit_failed;
}

}  // namespace millrace
