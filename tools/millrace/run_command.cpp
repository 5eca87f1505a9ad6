#include "tools/millrace/run_command.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/scenario/decode.h"
#include "sim/sweep/replications.h"
#include "sim/sweep/result_document.h"
#include "tools/millrace/run_table.h"
#include "tools/millrace/safe_file.h"
#include "version.h"

namespace millrace {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

/// While it lives, the first interrupt asks the run to stop; the default action is back for a second one.
class InterruptGuard {
   public:
    InterruptGuard() {
        struct sigaction action {};
        action.sa_handler = [](int) { interrupted = true; };
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        sigaction(SIGINT, &action, &previous_interrupt_);
        sigaction(SIGTERM, &action, &previous_terminate_);
    }
    ~InterruptGuard() {
        sigaction(SIGINT, &previous_interrupt_, nullptr);
        sigaction(SIGTERM, &previous_terminate_, nullptr);
    }
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;

   private:
    struct sigaction previous_interrupt_ {};
    struct sigaction previous_terminate_ {};
};

/// One line on a terminal, rewritten in place; nothing elsewhere.
class ProgressLine {
   public:
    explicit ProgressLine(bool wanted) : shown_(wanted && isatty(STDERR_FILENO) != 0) {}
    ~ProgressLine() {
        if (drawn_) {
            std::fputs("\r\033[K", stderr);
        }
    }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    void show(double share) {
        if (!shown_ || share <= 0.0) {
            return;
        }
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
        std::fprintf(stderr, "\rsimulating %3.0f %%, %.0f s left \033[K", 100.0 * share,
                     elapsed.count() * (1.0 - share) / share);
        drawn_ = true;
    }

   private:
    bool shown_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string time_of_day() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text.data();
}

/// Where, when and with what a result was made: everything that may differ between two equal runs.
std::string manifest(const RunCommandOptions& options, const RunResult& result, const std::string& started,
                     double wall_s) {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    nlohmann::ordered_json json;
    json["millrace_manifest"] = 1;
    json["version"] = version;
    json["commit"] = build_commit;
    json["compiler"] = build_compiler;
    json["build_type"] = build_type;
    json["command_line"] = options.command_line;
    json["random_numbers"] = "Philox2x64-10, keyed by purpose";
    json["host"] = host.data();
    json["started"] = started;
    json["wall_s"] = wall_s;
    json["jobs"] = options.jobs;
    json["events"] = result.events;
    json["device"] = "cpu";
    return json.dump(2) + "\n";
}

/// Every file this run was asked for, opened before it starts.
struct OutputFiles {
    std::unique_ptr<SafeFile> result;
    std::unique_ptr<SafeFile> manifest;
    std::unique_ptr<SafeFile> steps;

    explicit OutputFiles(const RunCommandOptions& options) {
        const std::string manifest_name = options.output + ".manifest.json";
        for (const std::string& name : {options.output, manifest_name, options.steps}) {
            if (std::error_code ignored; std::filesystem::equivalent(name, options.scenario.file, ignored)) {
                throw UsageError("writing " + name + " would overwrite the scenario");
            }
        }
        if (!options.output.empty() && options.output != "-") {
            if (options.steps == options.output || options.steps == manifest_name) {
                throw UsageError("the result and the step log cannot both be written to " + options.steps);
            }
            result = std::make_unique<SafeFile>(options.output);
            manifest = std::make_unique<SafeFile>(manifest_name);
        }
        if (options.steps == "-") {
            throw UsageError("the step log needs a file of its own: standard output shows the result");
        }
        if (!options.steps.empty()) {
            steps = std::make_unique<SafeFile>(options.steps);
        }
    }
};

}  // namespace

int run_command(const RunCommandOptions& options) {
    const Scenario scenario = load_scenario(options.scenario.file, options.scenario.overrides);
    OutputFiles files(options);

    const std::string started = time_of_day();
    const auto start = std::chrono::steady_clock::now();
    RunResult result;
    {
        const InterruptGuard guard;
        ProgressLine progress(!options.quiet);
        RunOptions run;
        run.jobs = options.jobs;
        run.interrupt = &interrupted;
        run.progress = [&](double share) { progress.show(share); };
        run.steps = files.steps ? &files.steps->stream() : nullptr;
        result = run_replications(scenario, run);
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;

    if (result.interrupted && result.replications_done == 0) {
        std::cerr << "Interrupted before any replication was complete: there is nothing to report.\n";
        return exit_interrupted;
    }

    const std::string format = options.output == "-" ? "json" : options.format;
    if (format == "json") {
        std::cout << result_json(scenario, result);
    } else if (format == "csv") {
        std::cout << result_csv(scenario, result);
    } else {
        std::cout << run_table(scenario, result, options.changes_model);
    }
    if (files.result) {
        files.result->stream() << result_json(scenario, result);
        files.result->commit();
        files.manifest->stream() << manifest(options, result, started, wall.count());
        files.manifest->commit();
    }
    if (files.steps) {
        files.steps->commit();
    }
    if (result.interrupted) {
        std::cerr << "Interrupted: the result holds the " << result.replications_done
                  << " replications that were complete.\n";
    }
    std::cout.flush();
    if (!std::cout) {
        throw std::runtime_error("could not write the result to standard output");
    }
    return result.interrupted ? exit_interrupted : exit_done;
}

}  // namespace millrace
