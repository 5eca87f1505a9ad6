// What subcommands share: exit codes, and an input file with its changes.
#pragma once

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

}  // namespace millrace
