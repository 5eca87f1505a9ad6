// The `millrace` command line. What each subcommand does stands in its own file; here are options and exit codes.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <exception>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "sim/scenario/diagnostics.h"
#include "tools/millrace/design_command.h"
#include "tools/millrace/devices_command.h"
#include "tools/millrace/embedded.h"
#include "tools/millrace/explain_command.h"
#include "tools/millrace/failure.h"
#include "tools/millrace/learn_command.h"
#include "tools/millrace/merge_command.h"
#include "tools/millrace/options.h"
#include "tools/millrace/pareto_command.h"
#include "tools/millrace/plan_command.h"
#include "tools/millrace/plot_command.h"
#include "tools/millrace/run_command.h"
#include "tools/millrace/sweep_command.h"
#include "tools/millrace/validate_command.h"
#include "tools/millrace/warm_start_command.h"
#include "version.h"

namespace {

using namespace millrace;

/// A whole number from `low` to `high`. CLI11 would take -1 for the largest unsigned one.
std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t low, std::int64_t high) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
        throw UsageError(option + " takes a whole number from " + std::to_string(low) + " to " + std::to_string(high) +
                         ", not \"" + text + "\"");
    }
    return value;
}

/// "2/5": the second of five parts.
void read_shard(const std::string& text, SweepCommandOptions& options) {
    constexpr std::int64_t most_shards = 100'000;
    const std::size_t slash = text.find('/');
    if (slash == std::string::npos) {
        throw UsageError("--shard takes a part and the number of parts, as in 2/5, not \"" + text + "\"");
    }
    options.shards = whole_number("--shard (the number of parts)", text.substr(slash + 1), 1, most_shards);
    options.shard = whole_number("--shard (the part, counted from 1)", text.substr(0, slash), 1, options.shards);
}

/// A number strictly between 0 and 1.
double share(const std::string& option, const std::string& text) {
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value > 0.0 && value < 1.0)) {
        throw UsageError(option + " takes a number between 0 and 1, not \"" + text + "\"");
    }
    return value;
}

std::string joined(int argc, char** argv) {
    std::string line;
    for (int i = 0; i < argc; ++i) {
        line += (i == 0 ? "" : " ") + std::string(argv[i]);
    }
    return line;
}

std::string version_text() {
    return std::string("millrace ") + version + " (" + build_commit + ", " + build_type + ", " + build_compiler +
           ")\nCPU kernels: " MILLRACE_CPU_KERNELS "\nCUDA kernels: " + (cuda_built ? "built" : "not built") +
           "\nMPI: " + (mpi_built ? "built" : "not built");
}

bool looks_like_an_option(const std::string& word) {
    return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.';
}

/// What somebody may have meant who wrote `word` where a subcommand or an option of `app` was expected.
std::string suggestion(const CLI::App& app, std::string word) {
    std::vector<std::string> names;
    const bool is_option = word.starts_with("-");
    if (is_option) {
        word.erase(0, word.find_first_not_of('-'));
        for (const CLI::Option* option : app.get_options()) {
            names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
        }
        // Ties go to the first, and a letter left out is a likelier slip than a wrong one: --sed means --seed, not
        // --set.
        std::stable_sort(names.begin(), names.end(),
                         [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    } else {
        for (const CLI::App* subcommand : app.get_subcommands({})) {
            names.push_back(subcommand->get_name());
        }
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string nearest = nearest_name(word, views);
    return nearest.empty() ? "" : " Did you mean " + std::string(is_option ? "--" : "") + nearest + "?";
}

/// CLI11's complaint in this program's words. `words` are the arguments as typed.
int explain_usage_error(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
    const CLI::App* where = &app;
    for (const CLI::App* subcommand : app.get_subcommands({})) {
        if (!words.empty() && words.front() == subcommand->get_name()) {
            where = subcommand;
        }
    }
    std::cerr << "millrace: error: ";
    if (where == &app && !words.empty() && !words.front().starts_with("-")) {
        std::cerr << "there is no subcommand \"" << words.front() << "\"." << suggestion(app, words.front());
    } else if (where == &app && words.empty()) {
        std::cerr
            << "a subcommand is needed: run, plan, explain, sweep, merge, pareto, plot, report, learn, warm-start, "
               "design, validate, devices or schema.";
    } else {
        std::string unknown;
        for (const std::string& word : words) {
            const std::string name = word.substr(0, word.find('='));
            if (looks_like_an_option(word) && where->get_option_no_throw(name) == nullptr) {
                unknown = name;
                break;
            }
        }
        if (!unknown.empty()) {
            std::cerr << "there is no option " << unknown << "." << suggestion(*where, unknown);
        } else {
            std::cerr << error.what();
        }
    }
    std::cerr << "\nSee millrace " << (where == &app ? "" : where->get_name() + " ") << "--help.\n";
    return exit_usage;
}

constexpr std::int64_t largest_seed = std::int64_t{1} << 53;

/// An empty name is a shell variable that was not set.
const CLI::Validator file_name([](const std::string& name) { return name.empty() ? "needs a name" : ""; }, "");

/// Options that several subcommands share, with the text of those that are checked after parsing.
struct SharedOptions {
    std::string seed;
    std::string replications;
    std::string jobs = "1";

    void add_input(CLI::App* app, InputOptions& input, const char* name, const char* description) {
        app->add_option(name, input.file, description)->required();
        app->add_option("--set", input.overrides, "Override one value, e.g. --set trainers.batch=32; repeatable")
            ->type_name("PATH=VALUE")
            ->allow_extra_args(false);
    }
    void add_seed_and_replications(CLI::App* app) {
        app->add_option("--seed", seed, "Seed of all random numbers; the same as --set seed=N")->type_name("N");
        app->add_option("--replications", replications, "Independent replications; the same as --set replications=N")
            ->type_name("N");
    }
    void add_jobs(CLI::App* app) {
        app->add_option("--jobs", jobs, "Threads; the result does not depend on it")
            ->type_name("N")
            ->capture_default_str();
    }
    static void add_backend(CLI::App* app, std::string& backend) {
        app->add_option("--backend", backend, "Where to compute; auto is the CPU for now, as GPUs are not checked yet")
            ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
            ->capture_default_str();
    }
    static void add_checkpoint(CLI::App* app, std::string& checkpoint, bool& resume) {
        app->add_option("--checkpoint", checkpoint,
                        "Keep in DIR, after every evaluation of a learner, what --resume needs; Ctrl-C then stops at "
                        "the next one")
            ->type_name("DIR")
            ->check(file_name);
        app->add_flag("--resume", resume, "Go on with the run in the folder of --checkpoint");
    }
    static void add_format(CLI::App* app, std::string& format) {
        app->add_option("--format", format, "What standard output shows")
            ->check(CLI::IsMember({"table", "json", "csv"}))
            ->capture_default_str();
    }
    static void add_output(CLI::App* app, std::string& output) {
        app->add_option("--output", output,
                        "Also write the JSON result to FILE, and FILE.manifest.json beside it; - writes JSON to "
                        "standard output")
            ->type_name("FILE")
            ->check(file_name);
    }

    /// --seed and --replications become overrides, the last ones.
    void put_into(const CLI::App* app, InputOptions& input) const {
        const auto put = [&](const char* option, const std::string& text, std::int64_t low, std::int64_t high) {
            if (app->count(std::string("--") + option) > 0) {
                input.overrides.push_back(std::string(option) + "=" +
                                          std::to_string(whole_number(std::string("--") + option, text, low, high)));
            }
        };
        put("seed", seed, 0, largest_seed);
        put("replications", replications, 1, 1'000'000);
    }
    std::int64_t threads() const { return whole_number("--jobs", jobs, 1, 1024); }
};

int run(int argc, char** argv) {
    CLI::App app{
        "Simulates asynchronous RL post-training pipelines: what workers, trainers and a buffer cost, how stale "
        "the data is and how often it is reused. Trains small models by the same methods.",
        "millrace"};
    app.set_version_flag("--version", version_text());
    app.require_subcommand(1);
    app.footer("Exit codes: 0 done, 1 the run failed, 2 usage, 3 bad input file, 130 interrupted.");

    RunCommandOptions run_options;
    SharedOptions run_shared;
    run_options.command_line = joined(argc, argv);
    CLI::App* run = app.add_subcommand("run", "Simulate a scenario and report its metrics with intervals");
    run_shared.add_input(run, run_options.scenario, "scenario", "Scenario file (JSON)");
    run_shared.add_seed_and_replications(run);
    run_shared.add_jobs(run);
    SharedOptions::add_format(run, run_options.format);
    SharedOptions::add_output(run, run_options.output);
    run->add_option("--steps", run_options.steps, "Write one JSON line per update and replication to FILE")
        ->type_name("FILE")
        ->check(file_name);
    run->add_option("--curve", run_options.curve,
                    "Write one JSON line per evaluation of a scenario's learner to FILE, as they come")
        ->type_name("FILE")
        ->check(file_name);
    SharedOptions::add_backend(run, run_options.backend);
    SharedOptions::add_checkpoint(run, run_options.checkpoint, run_options.resume);
    run->add_flag("--quiet", run_options.quiet, "No progress on standard error");

    SweepCommandOptions sweep_options;
    SharedOptions sweep_shared;
    std::string shard;
    sweep_options.command_line = joined(argc, argv);
    CLI::App* sweep = app.add_subcommand("sweep", "Run all designs of a sweep file; goes on with what is there");
    sweep_shared.add_input(sweep, sweep_options.sweep, "sweep", "Sweep file (JSON)");
    sweep
        ->add_option("--out", sweep_options.folder,
                     "Folder of the sweep: a new one, or one to go on with. Rows of finished replications are added "
                     "as they come; merged.jsonl is made of them at the end")
        ->type_name("DIR")
        ->check(file_name)
        ->required();
    sweep_shared.add_jobs(sweep);
    sweep
        ->add_option("--shard", shard,
                     "Run only this part of the work, for job arrays; when all parts are done, millrace merge DIR "
                     "puts them together")
        ->type_name("I/N");
    SharedOptions::add_backend(sweep, sweep_options.backend);
    sweep->add_flag("--quiet", sweep_options.quiet, "No progress and no remarks on standard error");

    MergeOptions merge_options;
    CLI::App* merge = app.add_subcommand("merge", "Put the rows of a sweep's shards together, or say what is missing");
    merge->add_option("folder", merge_options.folder, "Folder of the sweep")->required();
    merge->add_flag("--partial", merge_options.partial, "Also when rows are missing");
    ExplainOptions explain_options;
    SharedOptions explain_shared;
    CLI::App* explain =
        app.add_subcommand("explain", "Say what binds a scenario, and what one more of each would change");
    explain_shared.add_input(explain, explain_options.scenario, "scenario", "Scenario file (JSON)");
    explain_shared.add_seed_and_replications(explain);
    explain_shared.add_jobs(explain);
    explain->add_option("--format", explain_options.format, "What standard output shows")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
    explain
        ->add_option("--dot", explain_options.dot, "Write the pipeline's graph to FILE for Graphviz, what binds in red")
        ->type_name("FILE")
        ->check(file_name);
    explain->add_flag("--quiet", explain_options.quiet, "No progress on standard error");

    LearnCommandOptions learn_options;
    SharedOptions learn_shared;
    learn_options.command_line = joined(argc, argv);
    CLI::App* learn = app.add_subcommand("learn", "Warm-start a small model and improve it by reinforcement");
    learn_shared.add_input(learn, learn_options.input, "file", "Learn file (JSON)");
    learn_shared.add_seed_and_replications(learn);
    SharedOptions::add_backend(learn, learn_options.backend);
    learn_shared.add_jobs(learn);
    SharedOptions::add_format(learn, learn_options.format);
    SharedOptions::add_output(learn, learn_options.output);
    learn
        ->add_option("--curve", learn_options.curve,
                     "Write one JSON line per evaluation and replication to FILE, as they come")
        ->type_name("FILE")
        ->check(file_name);
    SharedOptions::add_checkpoint(learn, learn_options.checkpoint, learn_options.resume);
    learn->add_flag("--quiet", learn_options.quiet, "No progress and no remarks on standard error");

    WarmStartOptions warm_start_options;
    SharedOptions warm_start_shared;
    CLI::App* warm_start = app.add_subcommand("warm-start", "Make the model that learning starts from, and keep it");
    warm_start_shared.add_input(warm_start, warm_start_options.input, "file", "Learn file (JSON)");
    SharedOptions::add_backend(warm_start, warm_start_options.backend);
    warm_start_shared.add_jobs(warm_start);
    warm_start->add_option("--output", warm_start_options.output, "Checkpoint file to write")
        ->type_name("FILE")
        ->check(file_name)
        ->required();

    DesignOptions design_options;
    CLI::App* design = app.add_subcommand("design", "The optimal buffer and replay ratio of the convergence theorem");
    design->add_option("--mu", design_options.mu, "Imbalance: cost of generating a batch over cost of training on it")
        ->required();
    design->add_option("--rho", design_options.rho, "Coupling of the noise of samples, 0 to 1")->required();
    design->add_option("--alpha", design_options.alpha, "Noise grows as sigma(s) = (s/tau)^alpha, 0 < alpha < 1/2")
        ->required();
    design->add_option("--tau", design_options.tau, "Steps after which sigma, by this law, is 1")
        ->capture_default_str();
    SharedOptions::add_format(design, design_options.format);

    PlanCommandOptions plan_options;
    SharedOptions plan_shared;
    std::string plan_gpus;
    CLI::App* plan = app.add_subcommand("plan", "Choose split, store and weight synchronisation for a calibration");
    plan_shared.add_input(plan, plan_options.calibration, "--profile", "Calibration file (JSON)");
    plan->add_option("--gpus", plan_gpus, "GPUs to split between workers and trainers")->type_name("N")->required();
    plan->add_flag("--at-most", plan_options.at_most, "Fewer GPUs will do, too");
    plan->add_option("--minimize", plan_options.minimize, "What shall be least")
        ->check(CLI::IsMember({"usd_to_target", "gpu_s_to_target", "usd_per_update", "update_period_s"}))
        ->capture_default_str();
    plan->add_option("--max-staleness", plan_options.max_staleness, "Largest staleness/mean")
        ->type_name("VERSIONS")
        ->check(CLI::NonNegativeNumber);
    plan->add_option("--max-staleness-p99", plan_options.max_staleness_p99, "Largest staleness/p99")
        ->type_name("VERSIONS")
        ->check(CLI::NonNegativeNumber);
    plan->add_option("--store", plan_options.store, "Which stores to consider")
        ->check(CLI::IsMember({"any", "transfer_queue", "replay_buffer"}))
        ->capture_default_str();
    plan->add_option("--seed", plan_shared.seed, "Seed of all random numbers")->type_name("N");
    plan_shared.add_jobs(plan);
    plan->add_option("--format", plan_options.format, "What standard output shows")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
    plan->add_option("--out", plan_options.out, "Write recommended.json, a scenario, and plan.json into DIR")
        ->type_name("DIR")
        ->check(file_name);
    plan->add_flag("--quiet", plan_options.quiet, "No progress on standard error");

    ValidateOptions validate_options;
    CLI::App* validate = app.add_subcommand("validate", "Check files of any kind without running them");
    validate->add_option("file", validate_options.files, "Scenarios, learn files, sweeps and calibrations (JSON)")
        ->required();
    validate->add_option("--set", validate_options.overrides, "Override one value; repeatable")
        ->type_name("PATH=VALUE")
        ->allow_extra_args(false);
    validate->add_flag("--resolved", validate_options.resolved, "Print each file with its defaults written out");

    ParetoCommandOptions pareto_options;
    std::string confidence = "0.95";
    CLI::App* pareto = app.add_subcommand("pareto", "Say which designs of a sweep are on the frontier, and how surely");
    pareto->add_option("folder", pareto_options.folder, "Folder of the sweep")->required();
    pareto->add_option("--confidence", confidence, "Probability that all decisions are right")
        ->type_name("P")
        ->capture_default_str();
    pareto
        ->add_option("--reference", pareto_options.reference,
                     "Where hypervolumes end: a value per objective; default: a tenth beyond the worst means")
        ->type_name("X,Y");
    SharedOptions::add_format(pareto, pareto_options.format);
    // What follows goes to a script as it is: its options, and --help, are the script's own.
    std::string plots;
    const auto add_script = [&](const char* name, const char* description) {
        CLI::App* script = app.add_subcommand(name, description)->prefix_command();
        script->set_help_flag();
        script->add_option("--plots", plots, "Folder of the scripts that draw")->type_name("DIR")->check(file_name);
        return script;
    };
    const CLI::App* plot = add_script("plot", "Draw a figure: plot KIND FILES --out STEM; plot --help lists the kinds");
    const CLI::App* report = add_script("report", "Make one HTML file of a sweep: report DIR");

    const CLI::App* devices = app.add_subcommand("devices", "Say what a model can be trained on here");

    std::string schema_of = "scenario";
    CLI::App* schema = app.add_subcommand("schema", "Print the JSON Schema of a kind of file");
    schema->add_option("kind", schema_of, "Kind of file")
        ->check(CLI::IsMember({"scenario", "learn", "sweep", "calibration"}))
        ->capture_default_str();

    const std::vector<std::string> words(argv + 1, argv + argc);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        return app.exit(asked);
    } catch (const CLI::ParseError& error) {
        return explain_usage_error(app, error, words);
    }

    if (run->parsed()) {
        run_options.changes_model = !run_options.scenario.overrides.empty();
        run_shared.put_into(run, run_options.scenario);
        run_options.jobs = run_shared.threads();
        return run_command(run_options);
    }
    if (sweep->parsed()) {
        if (!shard.empty() || sweep->count("--shard") > 0) {
            read_shard(shard, sweep_options);
        }
        sweep_options.jobs = sweep_shared.threads();
        return sweep_command(sweep_options);
    }
    if (merge->parsed()) {
        return merge_command(merge_options);
    }
    if (explain->parsed()) {
        explain_shared.put_into(explain, explain_options.scenario);
        explain_options.jobs = explain_shared.threads();
        return explain_command(explain_options);
    }
    if (learn->parsed()) {
        learn_shared.put_into(learn, learn_options.input);
        learn_options.jobs = learn_shared.threads();
        return learn_command(learn_options);
    }
    if (warm_start->parsed()) {
        warm_start_options.jobs = warm_start_shared.threads();
        return warm_start_command(warm_start_options);
    }
    if (design->parsed()) {
        try {
            std::cout << design_report(design_options);
        } catch (const std::invalid_argument& error) {
            throw UsageError(error.what());
        }
        return exit_done;
    }
    if (pareto->parsed()) {
        pareto_options.confidence = share("--confidence", confidence);
        return pareto_command(pareto_options);
    }
    if (plan->parsed()) {
        // Splits are counted up to the number of GPUs, and with --at-most up to its square.
        const std::int64_t most_gpus = plan_options.at_most ? 256 : 10'000;
        plan_options.gpus =
            whole_number(plan_options.at_most ? "--gpus with --at-most" : "--gpus", plan_gpus, 2, most_gpus);
        if (plan->count("--seed") > 0) {
            plan_options.seed = static_cast<std::uint64_t>(whole_number("--seed", plan_shared.seed, 0, largest_seed));
        }
        plan_options.jobs = plan_shared.threads();
        return plan_command(plan_options);
    }
    if (validate->parsed()) {
        return validate_command(validate_options);
    }
    if (plot->parsed()) {
        return run_plot_script("figure.py", plots, plot->remaining());
    }
    if (report->parsed()) {
        return run_plot_script("report.py", plots, report->remaining());
    }
    if (devices->parsed()) {
        std::cout << devices_report();
    }
    if (schema->parsed()) {
        std::cout << (schema_of == "learn"         ? learn_schema_json
                      : schema_of == "sweep"       ? sweep_schema_json
                      : schema_of == "calibration" ? calibration_schema_json
                                                   : scenario_schema_json);
    }
    return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (...) {
        return millrace::report_failure(std::current_exception());
    }
}
