#include "tools/millrace/subcommands.h"

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "tools/millrace/design_command.h"
#include "tools/millrace/devices_command.h"
#include "tools/millrace/embedded.h"
#include "tools/millrace/explain_command.h"
#include "tools/millrace/learn_command.h"
#include "tools/millrace/merge_command.h"
#include "tools/millrace/pareto_command.h"
#include "tools/millrace/plan_command.h"
#include "tools/millrace/plot_command.h"
#include "tools/millrace/run_command.h"
#include "tools/millrace/sweep_command.h"
#include "tools/millrace/validate_command.h"
#include "tools/millrace/warm_start_command.h"

namespace millrace {
namespace {

/// Where the options of a subcommand are put, until it is asked for or the program ends.
template <typename Options>
struct Asked {
    Options options;
    SharedOptions shared;
};

template <typename Options>
std::shared_ptr<Asked<Options>> place_for() {
    return std::make_shared<Asked<Options>>();
}

void when_named(CLI::App* subcommand, Request& request, std::function<int()> serve) {
    subcommand->callback([&request, serve = std::move(serve)] { request.serve = serve; });
}

void add_run(CLI::App& app, Request& request) {
    const auto asked = place_for<RunCommandOptions>();
    RunCommandOptions& options = asked->options;
    CLI::App* run = app.add_subcommand("run", "Simulate a scenario and report its metrics with intervals");
    SharedOptions::add_input(run, options.scenario, "scenario", "Scenario file (JSON)");
    asked->shared.add_seed_and_replications(run);
    asked->shared.add_jobs(run);
    SharedOptions::add_format(run, options.format);
    SharedOptions::add_output(run, options.output);
    SharedOptions::add_file(run, "--steps", options.steps, "Write one JSON line per update and replication to FILE");
    SharedOptions::add_file(run, "--curve", options.curve,
                            "Write one JSON line per evaluation of a scenario's learner to FILE, as they come");
    SharedOptions::add_backend(run, options.backend);
    SharedOptions::add_checkpoint(run, options.checkpoint, options.resume);
    run->add_flag("--quiet", options.quiet, "No progress on standard error");
    when_named(run, request, [asked, run, &request] {
        RunCommandOptions& what = asked->options;
        what.command_line = request.command_line;
        what.changes_model = !what.scenario.overrides.empty();
        asked->shared.put_into(run, what.scenario);
        what.jobs = asked->shared.threads();
        return run_command(what);
    });
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

void add_sweep(CLI::App& app, Request& request) {
    const auto asked = place_for<SweepCommandOptions>();
    const auto shard = std::make_shared<std::string>();
    SweepCommandOptions& options = asked->options;
    CLI::App* sweep = app.add_subcommand("sweep", "Run all designs of a sweep file; goes on with what is there");
    SharedOptions::add_input(sweep, options.sweep, "sweep", "Sweep file (JSON)");
    sweep
        ->add_option("--out", options.folder,
                     "Folder of the sweep: a new one, or one to go on with. Rows of finished replications are added "
                     "as they come; merged.jsonl is made of them at the end")
        ->type_name("DIR")
        ->check(file_name())
        ->required();
    asked->shared.add_jobs(sweep);
    sweep
        ->add_option("--shard", *shard,
                     "Run only this part of the work, for job arrays; when all parts are done, millrace merge DIR "
                     "puts them together")
        ->type_name("I/N");
    SharedOptions::add_backend(sweep, options.backend);
    sweep->add_flag("--quiet", options.quiet, "No progress and no remarks on standard error");
    when_named(sweep, request, [asked, shard, sweep, &request] {
        SweepCommandOptions& what = asked->options;
        what.command_line = request.command_line;
        if (sweep->count("--shard") > 0) {
            read_shard(*shard, what);
        }
        what.jobs = asked->shared.threads();
        return sweep_command(what);
    });
}

void add_merge(CLI::App& app, Request& request) {
    const auto asked = place_for<MergeOptions>();
    CLI::App* merge = app.add_subcommand("merge", "Put the rows of a sweep's shards together, or say what is missing");
    merge->add_option("folder", asked->options.folder, "Folder of the sweep")->required();
    merge->add_flag("--partial", asked->options.partial, "Also when rows are missing");
    when_named(merge, request, [asked] { return merge_command(asked->options); });
}

void add_explain(CLI::App& app, Request& request) {
    const auto asked = place_for<ExplainOptions>();
    ExplainOptions& options = asked->options;
    CLI::App* explain =
        app.add_subcommand("explain", "Say what binds a scenario, and what one more of each would change");
    SharedOptions::add_input(explain, options.scenario, "scenario", "Scenario file (JSON)");
    asked->shared.add_seed_and_replications(explain);
    asked->shared.add_jobs(explain);
    SharedOptions::add_table_or_json(explain, options.format);
    SharedOptions::add_file(explain, "--dot", options.dot,
                            "Write the pipeline's graph to FILE for Graphviz, what binds in red");
    explain->add_flag("--quiet", options.quiet, "No progress on standard error");
    when_named(explain, request, [asked, explain] {
        asked->shared.put_into(explain, asked->options.scenario);
        asked->options.jobs = asked->shared.threads();
        return explain_command(asked->options);
    });
}

void add_learn(CLI::App& app, Request& request) {
    const auto asked = place_for<LearnCommandOptions>();
    LearnCommandOptions& options = asked->options;
    CLI::App* learn = app.add_subcommand("learn", "Warm-start a small model and improve it by reinforcement");
    SharedOptions::add_input(learn, options.input, "file", "Learn file (JSON)");
    asked->shared.add_seed_and_replications(learn);
    SharedOptions::add_backend(learn, options.backend);
    asked->shared.add_jobs(learn);
    SharedOptions::add_format(learn, options.format);
    SharedOptions::add_output(learn, options.output);
    SharedOptions::add_file(learn, "--curve", options.curve,
                            "Write one JSON line per evaluation and replication to FILE, as they come");
    SharedOptions::add_checkpoint(learn, options.checkpoint, options.resume);
    learn->add_flag("--quiet", options.quiet, "No progress and no remarks on standard error");
    when_named(learn, request, [asked, learn, &request] {
        LearnCommandOptions& what = asked->options;
        what.command_line = request.command_line;
        asked->shared.put_into(learn, what.input);
        what.jobs = asked->shared.threads();
        return learn_command(what);
    });
}

void add_warm_start(CLI::App& app, Request& request) {
    const auto asked = place_for<WarmStartOptions>();
    WarmStartOptions& options = asked->options;
    CLI::App* warm_start = app.add_subcommand("warm-start", "Make the model that learning starts from, and keep it");
    SharedOptions::add_input(warm_start, options.input, "file", "Learn file (JSON)");
    SharedOptions::add_backend(warm_start, options.backend);
    asked->shared.add_jobs(warm_start);
    warm_start->add_option("--output", options.output, "Checkpoint file to write")
        ->type_name("FILE")
        ->check(file_name())
        ->required();
    when_named(warm_start, request, [asked] {
        asked->options.jobs = asked->shared.threads();
        return warm_start_command(asked->options);
    });
}

void add_design(CLI::App& app, Request& request) {
    const auto asked = place_for<DesignOptions>();
    DesignOptions& options = asked->options;
    CLI::App* design = app.add_subcommand("design", "The optimal buffer and replay ratio of the convergence theorem");
    design->add_option("--mu", options.mu, "Imbalance: cost of generating a batch over cost of training on it")
        ->required();
    design->add_option("--rho", options.rho, "Coupling of the noise of samples, 0 to 1")->required();
    design->add_option("--alpha", options.alpha, "Noise grows as sigma(s) = (s/tau)^alpha, 0 < alpha < 1/2")
        ->required();
    design->add_option("--tau", options.tau, "Steps after which sigma, by this law, is 1")->capture_default_str();
    SharedOptions::add_format(design, options.format);
    when_named(design, request, [asked] {
        try {
            std::cout << design_report(asked->options);
        } catch (const std::invalid_argument& error) {
            throw UsageError(error.what());
        }
        return exit_done;
    });
}

void add_plan(CLI::App& app, Request& request) {
    const auto asked = place_for<PlanCommandOptions>();
    const auto gpus = std::make_shared<std::string>();
    struct Limits {
        std::string mean, p99;
    };
    const auto limits = std::make_shared<Limits>();
    PlanCommandOptions& options = asked->options;
    CLI::App* plan = app.add_subcommand("plan", "Choose split, store and weight synchronisation for a calibration");
    SharedOptions::add_input(plan, options.calibration, "--profile", "Calibration file (JSON)");
    plan->add_option("--gpus", *gpus, "GPUs to split between workers and trainers: 2 to 10000, or 256 with --at-most")
        ->type_name("N")
        ->required();
    plan->add_flag("--at-most", options.at_most, "Fewer GPUs will do, too");
    plan->add_option("--minimize", options.minimize, "What shall be least")
        ->check(CLI::IsMember({"usd_to_target", "gpu_s_to_target", "usd_per_update", "update_period_s"}))
        ->capture_default_str();
    plan->add_option("--max-staleness", limits->mean, "Largest staleness/mean")->type_name("VERSIONS");
    plan->add_option("--max-staleness-p99", limits->p99, "Largest staleness/p99")->type_name("VERSIONS");
    plan->add_option("--store", options.store, "Which stores to consider")
        ->check(CLI::IsMember({"any", "transfer_queue", "replay_buffer"}))
        ->capture_default_str();
    asked->shared.add_seed(plan, "Seed of all random numbers");
    asked->shared.add_jobs(plan);
    SharedOptions::add_table_or_json(plan, options.format);
    plan->add_option("--out", options.out, "Write recommended.json, a scenario, and plan.json into DIR")
        ->type_name("DIR")
        ->check(file_name());
    plan->add_flag("--quiet", options.quiet, "No progress on standard error");
    when_named(plan, request, [asked, gpus, limits, plan] {
        PlanCommandOptions& what = asked->options;
        if (plan->count("--max-staleness") > 0) {
            what.max_staleness = not_negative("--max-staleness", limits->mean, "a number of versions");
        }
        if (plan->count("--max-staleness-p99") > 0) {
            what.max_staleness_p99 = not_negative("--max-staleness-p99", limits->p99, "a number of versions");
        }
        const std::int64_t most_gpus = what.at_most ? 256 : 10'000;
        what.gpus = whole_number(what.at_most ? "--gpus with --at-most" : "--gpus", *gpus, 2, most_gpus,
                                 what.at_most ? "the search looks at every split of every number of GPUs up to N, "
                                                "which are N (N - 1) / 2, each with 48 stores and sync intervals"
                                              : "the search looks at every split, which are N - 1, each with 48 "
                                                "stores and sync intervals; take a unit of several GPUs as one");
        if (plan->count("--seed") > 0) {
            what.seed = static_cast<std::uint64_t>(whole_number("--seed", asked->shared.seed, 0, largest_seed));
        }
        what.jobs = asked->shared.threads();
        return plan_command(what);
    });
}

void add_validate(CLI::App& app, Request& request) {
    const auto asked = place_for<ValidateOptions>();
    ValidateOptions& options = asked->options;
    CLI::App* validate = app.add_subcommand("validate", "Check files of any kind without running them");
    validate->add_option("file", options.files, "Scenarios, learn files, sweeps and calibrations (JSON)")->required();
    validate->add_option("--set", options.overrides, "Override one value; repeatable")
        ->type_name("PATH=VALUE")
        ->allow_extra_args(false);
    validate->add_flag("--resolved", options.resolved, "Print each file with its defaults written out");
    when_named(validate, request, [asked] { return validate_command(asked->options); });
}

void add_pareto(CLI::App& app, Request& request) {
    const auto asked = place_for<ParetoCommandOptions>();
    const auto confidence = std::make_shared<std::string>("0.95");
    ParetoCommandOptions& options = asked->options;
    CLI::App* pareto = app.add_subcommand("pareto", "Say which designs of a sweep are on the frontier, and how surely");
    pareto->add_option("folder", options.folder, "Folder of the sweep")->required();
    pareto->add_option("--confidence", *confidence, "Probability that all decisions are right")
        ->type_name("P")
        ->capture_default_str();
    pareto
        ->add_option("--reference", options.reference,
                     "Where hypervolumes end: a value per objective; default: a tenth beyond the families' fronts")
        ->type_name("X,Y");
    SharedOptions::add_format(pareto, options.format);
    when_named(pareto, request, [asked, confidence] {
        asked->options.confidence = share("--confidence", *confidence);
        return pareto_command(asked->options);
    });
}

/// A subcommand whose words go to a script as they are: options, and --help, are the script's own. Only --plots, which
/// may stand anywhere, says where the script is.
void add_script(CLI::App& app, Request& request, const char* name, const char* script_name, const char* description) {
    const auto plots = std::make_shared<std::string>();
    CLI::App* script = app.add_subcommand(name, description)->prefix_command();
    script->set_help_flag();
    script->add_option("--plots", *plots, "Folder of the scripts that draw")->type_name("DIR")->check(file_name());
    when_named(script, request, [plots, script, script_name] {
        std::vector<std::string> words = script->remaining();
        take_plots_option(words, *plots);
        return run_plot_script(script_name, *plots, words);
    });
}

void add_devices(CLI::App& app, Request& request) {
    CLI::App* devices = app.add_subcommand("devices", "Say what a model can be trained on here");
    when_named(devices, request, [] {
        std::cout << devices_report();
        return exit_done;
    });
}

void add_schema(CLI::App& app, Request& request) {
    const auto kind = std::make_shared<std::string>("scenario");
    CLI::App* schema = app.add_subcommand("schema", "Print the JSON Schema of a kind of file");
    schema->add_option("kind", *kind, "Kind of file")
        ->check(CLI::IsMember({"scenario", "learn", "sweep", "calibration"}))
        ->capture_default_str();
    when_named(schema, request, [kind] {
        std::cout << (*kind == "learn"         ? learn_schema_json
                      : *kind == "sweep"       ? sweep_schema_json
                      : *kind == "calibration" ? calibration_schema_json
                                               : scenario_schema_json);
        return exit_done;
    });
}

}  // namespace

void add_subcommands(CLI::App& app, Request& request) {
    add_run(app, request);
    add_sweep(app, request);
    add_merge(app, request);
    add_explain(app, request);
    add_learn(app, request);
    add_warm_start(app, request);
    add_design(app, request);
    add_plan(app, request);
    add_validate(app, request);
    add_pareto(app, request);
    add_script(app, request, "plot", "figure.py",
               "Draw a figure: plot KIND FILES --out STEM; plot --help lists the kinds");
    add_script(app, request, "report", "report.py", "Make one HTML file of a sweep: report DIR");
    add_devices(app, request);
    add_schema(app, request);
}

}  // namespace millrace
