#include "tools/millrace/learn_command.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>

#include "model/warm_start.h"
#include "tools/millrace/any_backend.h"
#include "tools/millrace/checkpoint_folder.h"
#include "tools/millrace/interrupt.h"
#include "tools/millrace/learn_result.h"
#include "tools/millrace/learner_seeds.h"
#include "tools/millrace/manifest.h"
#include "tools/millrace/progress_line.h"
#include "tools/millrace/result_files.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

LearnSettings settings_of(const LearnFile& file) {
    LearnSettings settings;
    settings.learner = file.learner;
    settings.updates = file.updates;
    settings.batch = file.batch;
    settings.group_size = file.group_size;
    settings.seeds.clear();
    for (std::int64_t replication = 0; replication < file.replications; ++replication) {
        settings.seeds.push_back(learner_seed(file.seed, replication));
    }
    return settings;
}

/// The rows as they come, so that a run can be watched.
class CurveFile {
   public:
    explicit CurveFile(const std::string& path) : path_(path) {
        if (path.empty()) {
            return;
        }
        static_cast<void>(SafeFile(path));  // says what is wrong with the path
        stream_.open(path, std::ios::binary | std::ios::trunc);
    }
    void write(const std::string& lines) {
        if (stream_.is_open() && !(stream_ << lines << std::flush)) {
            throw std::runtime_error("could not write all of " + path_);
        }
    }

   private:
    std::string path_;
    std::ofstream stream_;
};

/// What happens between the learner's reports.
class Session {
   public:
    Session(const LearnCommandOptions& options, const LearnFile& file)
        : options_(options), file_(file), curve_file_(options.curve), progress_("learning", !options.quiet) {
        if (!options.checkpoint.empty()) {
            folder_.emplace(options.checkpoint, options.resume, file.resolved_json);
        }
    }

    LearnOutcome run(AnyBackend& backend) {
        LearnSettings settings = settings_of(file_);
        if (folder_) {
            settings.checkpoint = folder_->state_path();
            settings.resume = folder_->holds_state() ? std::optional(folder_->state_path()) : std::nullopt;
        }
        LearnEvents events;
        events.started = [&](const LearnStart& start) { on_start(start); };
        events.evaluated = [&](const LearnReport& report) { on_report(report); };
        // A run that is to be resumed stops at an evaluation: what it reports of the updates since the last one could
        // not be put together again.
        events.stop = folder_ ? &stop_ : &interrupted();
        events.stop_warm_start = &interrupted();
        outcome_.backend = describe(backend);
        outcome_.result = std::visit([&](auto& one) { return learn(*one, settings, events); }, backend);
        outcome_.learning_s = seconds_since(learning_from_);
        outcome_.updates_made = outcome_.result.updates - outcome_.start.update;
        return std::move(outcome_);
    }

   private:
    void on_start(const LearnStart& start) {
        outcome_.start = start;
        outcome_.warm_start_s = seconds_since(started_);
        learning_from_ = Clock::now();
        progress_.start_clock();
        if (folder_) {
            outcome_.curve = folder_->start(start.update, file_.replications);
            curve_file_.write(outcome_.curve.text());
        }
        stop_ = interrupted().load();
    }

    void on_report(const LearnReport& report) {
        const std::string lines = outcome_.curve.add(report);
        curve_file_.write(lines);
        if (folder_) {
            folder_->append(lines);
        }
        stop_ = interrupted().load();
        const std::int64_t first = outcome_.start.update;
        if (file_.updates > first) {
            char text[32];
            std::snprintf(text, sizeof text, "pass@1 %.3f", quartile(outcome_.curve.at_end("learner/pass@1"), 2));
            progress_.show(static_cast<double>(report.update - first) / static_cast<double>(file_.updates - first),
                           text);
        }
    }

    const LearnCommandOptions& options_;
    const LearnFile& file_;
    CurveFile curve_file_;
    ProgressLine progress_;
    std::optional<CheckpointFolder> folder_;
    std::atomic<bool> stop_{false};
    Clock::time_point started_ = Clock::now();
    Clock::time_point learning_from_ = started_;
    LearnOutcome outcome_;
};

void show(const std::string& format, const LearnFile& file, const LearnOutcome& outcome) {
    if (format == "json") {
        std::cout << learn_json(file, outcome);
    } else if (format == "csv") {
        std::cout << learn_csv(outcome);
    } else {
        std::cout << learn_table(file, outcome);
    }
}

}  // namespace

int learn_command(const LearnCommandOptions& options) {
    const LearnFile file = load_learn_file(options.input.file, options.input.overrides);
    if (options.resume && options.checkpoint.empty()) {
        throw UsageError("--resume needs --checkpoint: the folder of the run to go on with");
    }
    ResultFiles files(options.output, options.curve, options.input.file, {"the learn file", "the curve"});
    std::optional<InterruptGuard> guard(std::in_place);  // before the backend makes its threads
    BackendChoice chosen = open_backend(options.backend, options.jobs);
    if (!chosen.remark.empty() && !options.quiet) {
        std::cerr << chosen.remark << '\n';
    }

    const std::string started = time_of_day();
    const std::string how_to_go_on = options.checkpoint.empty() ? "" : how_to_resume(options.checkpoint);
    LearnOutcome outcome;
    try {
        outcome = Session(options, file).run(chosen.backend);
    } catch (const WarmStartStopped&) {
        std::cerr << "Interrupted during the warm start: there is nothing to report.\n" << how_to_go_on;
        return exit_interrupted;
    }
    guard.reset();
    if (outcome.curve.empty()) {
        std::cerr << "Interrupted before the first evaluation: there is nothing to report.\n" << how_to_go_on;
        return exit_interrupted;
    }

    show(options.output == "-" ? "json" : options.format, file, outcome);
    nlohmann::ordered_json made = manifest(options.command_line, "Philox4x32-10, keyed by purpose", started);
    made["wall_s"] = outcome.warm_start_s + outcome.learning_s;
    made["warm_start_s"] = outcome.warm_start_s;
    made["learning_s"] = outcome.learning_s;
    made["updates_made"] = outcome.updates_made;
    made["jobs"] = options.jobs;
    made["device"] = outcome.backend;
    files.write(learn_json(file, outcome), made);
    if (outcome.result.stopped) {
        std::cerr << "Interrupted: the result is that of update " << outcome.curve.last_update() << " of "
                  << file.updates << ".\n"
                  << how_to_go_on;
    }
    std::cout.flush();
    if (!std::cout) {
        throw std::runtime_error("could not write the result to standard output");
    }
    return outcome.result.stopped ? exit_interrupted : exit_done;
}

}  // namespace millrace
