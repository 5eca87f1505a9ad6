// What the subcommands' options have in common, and numbers as they are typed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "tools/millrace/options.h"

namespace millrace {

/// What a command line asks for.
struct Request {
    std::string command_line;    ///< as typed, for manifests
    std::function<int()> serve;  ///< of the subcommand that it names; returns the exit code
};

inline constexpr std::int64_t largest_seed = std::int64_t{1} << 53;

/// A whole number from `low` to `high`; where more is asked for, `why_not_more`, a sentence, is said too. Throws
/// UsageError.
std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t low, std::int64_t high,
                          const std::string& why_not_more = "");

/// A number strictly between 0 and 1. Throws UsageError.
double share(const std::string& option, const std::string& text);

/// A finite number that is not below 0, called `what` in the message. Throws UsageError.
double not_negative(const std::string& option, const std::string& text, const std::string& what);

/// Of options that name a file or folder: an empty name is a shell variable that was not set.
CLI::Validator file_name();

/// Options that several subcommands share, with the text of those that are checked after parsing.
struct SharedOptions {
    std::string seed;
    std::string replications;
    std::string jobs = "1";

    static void add_input(CLI::App* app, InputOptions& input, const char* name, const char* description);
    void add_seed(CLI::App* app, const char* description);
    void add_seed_and_replications(CLI::App* app);
    void add_jobs(CLI::App* app);
    static void add_backend(CLI::App* app, std::string& backend);
    static void add_checkpoint(CLI::App* app, std::string& checkpoint, bool& resume);
    static void add_format(CLI::App* app, std::string& format);
    static void add_table_or_json(CLI::App* app, std::string& format);
    static void add_output(CLI::App* app, std::string& output);
    static void add_file(CLI::App* app, const char* name, std::string& file, const char* description);

    /// --seed and --replications become overrides, the last ones.
    void put_into(const CLI::App* app, InputOptions& input) const;
    std::int64_t threads() const { return whole_number("--jobs", jobs, 1, 1024); }
};

}  // namespace millrace
