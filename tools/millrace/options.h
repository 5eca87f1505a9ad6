// What the subcommands are asked to do, and the exit codes by which they answer.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace millrace {

enum ExitCode : int {
    exit_done = 0,
    exit_failed = 1,  ///< the run failed, or a requested check did not hold
    exit_usage = 2,
    exit_bad_input = 3,
    exit_interrupted = 130,
};

/// The command line asks for something impossible; what() says so in a sentence.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// An input file with its changes.
struct InputOptions {
    std::string file;
    std::vector<std::string> overrides;  ///< `path=value`, in order; --seed and --replications are among them
};

struct RunCommandOptions {
    InputOptions scenario;
    std::string format = "table";  ///< "table", "json" or "csv"
    std::string output;            ///< file for the JSON result; empty: none, "-": standard output
    std::string steps;             ///< file for the step log; empty: none
    std::string backend = "auto";  ///< of a learner: "auto", "cpu" or "cuda"
    std::string curve;             ///< file for the rows of learning curves; empty: none
    std::string checkpoint;        ///< folder to resume learning from; empty: none
    bool resume = false;
    std::int64_t jobs = 1;
    bool quiet = false;
    bool changes_model = false;  ///< --set was given: published numbers may be for other settings
    std::string command_line;    ///< for the manifest
};

struct LearnCommandOptions {
    InputOptions input;
    std::string backend = "auto";  ///< "auto", "cpu" or "cuda"
    std::int64_t jobs = 1;         ///< threads of the CPU
    std::string format = "table";  ///< "table", "json" or "csv"
    std::string output;            ///< file for the JSON result; empty: none, "-": standard output
    std::string curve;             ///< file for the rows as they come; empty: none
    std::string checkpoint;        ///< folder to resume from; empty: none
    bool resume = false;
    bool quiet = false;
    std::string command_line;
};

struct SweepCommandOptions {
    InputOptions sweep;
    std::string folder;
    std::int64_t shard = 1;  ///< of `shards`, counted from 1
    std::int64_t shards = 1;
    std::string backend = "auto";  ///< of learners
    std::int64_t jobs = 1;
    bool quiet = false;
    std::string command_line;
};

struct MergeOptions {
    std::string folder;
    bool partial = false;  ///< merge what is there
};

struct WarmStartOptions {
    InputOptions input;
    std::string backend = "auto";
    std::int64_t jobs = 1;
    std::string output;  ///< file for theta_0
};

}  // namespace millrace
