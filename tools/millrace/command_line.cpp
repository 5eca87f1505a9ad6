#include "tools/millrace/command_line.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace millrace {

std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t low, std::int64_t high,
                          const std::string& why_not_more) {
    // CLI11 would take -1 for the largest unsigned number.
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error != std::errc::invalid_argument && end == text.data() + text.size();
    if (!is_number || error != std::errc{} || value < low || value > high) {
        const bool too_much = is_number && text[0] != '-' && (error != std::errc{} || value > high);
        throw UsageError(option + " takes a whole number from " + std::to_string(low) + " to " + std::to_string(high) +
                         ", not \"" + text + "\"" + (too_much && !why_not_more.empty() ? ": " + why_not_more : ""));
    }
    return value;
}

namespace {

/// NaN when the whole text is not a number.
double number(const std::string& text) {
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc{} && end == text.data() + text.size();
    return is_number ? value : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

double share(const std::string& option, const std::string& text) {
    const double value = number(text);
    if (!(value > 0.0 && value < 1.0)) {
        throw UsageError(option + " takes a number between 0 and 1, not \"" + text + "\"");
    }
    return value;
}

double not_negative(const std::string& option, const std::string& text, const std::string& what) {
    const double value = number(text);
    if (!(value >= 0.0 && std::isfinite(value))) {
        throw UsageError(option + " takes " + what + ", 0 or more, not \"" + text + "\"");
    }
    return value;
}

CLI::Validator file_name() {
    return CLI::Validator([](const std::string& name) { return name.empty() ? "needs a name" : ""; }, "");
}

void SharedOptions::add_input(CLI::App* app, InputOptions& input, const char* name, const char* description) {
    app->add_option(name, input.file, description)->required();
    app->add_option("--set", input.overrides, "Override one value, e.g. --set trainers.batch=32; repeatable")
        ->type_name("PATH=VALUE")
        ->allow_extra_args(false);
}

void SharedOptions::add_seed(CLI::App* app, const char* description) {
    app->add_option("--seed", seed, description)->type_name("N");
}

void SharedOptions::add_seed_and_replications(CLI::App* app) {
    add_seed(app, "Seed of all random numbers; the same as --set seed=N");
    app->add_option("--replications", replications, "Independent replications; the same as --set replications=N")
        ->type_name("N");
}

void SharedOptions::add_jobs(CLI::App* app) {
    app->add_option("--jobs", jobs, "Threads; the result does not depend on it")->type_name("N")->capture_default_str();
}

void SharedOptions::add_backend(CLI::App* app, std::string& backend) {
    app->add_option("--backend", backend, "Where to compute; auto is the CPU for now, as GPUs are not checked yet")
        ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
        ->capture_default_str();
}

void SharedOptions::add_checkpoint(CLI::App* app, std::string& checkpoint, bool& resume) {
    app->add_option("--checkpoint", checkpoint,
                    "Keep in DIR, after every evaluation of a learner, what --resume needs; Ctrl-C then stops at the "
                    "next one")
        ->type_name("DIR")
        ->check(file_name());
    app->add_flag("--resume", resume, "Go on with the run in the folder of --checkpoint");
}

void SharedOptions::add_format(CLI::App* app, std::string& format) {
    app->add_option("--format", format, "What standard output shows")
        ->check(CLI::IsMember({"table", "json", "csv"}))
        ->capture_default_str();
}

void SharedOptions::add_table_or_json(CLI::App* app, std::string& format) {
    app->add_option("--format", format, "What standard output shows")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
}

void SharedOptions::add_output(CLI::App* app, std::string& output) {
    add_file(app, "--output", output,
             "Also write the JSON result to FILE, and FILE.manifest.json beside it; - writes JSON to standard output");
}

void SharedOptions::add_file(CLI::App* app, const char* name, std::string& file, const char* description) {
    app->add_option(name, file, description)->type_name("FILE")->check(file_name());
}

void SharedOptions::put_into(const CLI::App* app, InputOptions& input) const {
    const auto put = [&](const char* option, const std::string& text, std::int64_t low, std::int64_t high) {
        if (app->count(std::string("--") + option) > 0) {
            input.overrides.push_back(std::string(option) + "=" +
                                      std::to_string(whole_number(std::string("--") + option, text, low, high)));
        }
    };
    put("seed", seed, 0, largest_seed);
    put("replications", replications, 1, 1'000'000);
}

}  // namespace millrace
