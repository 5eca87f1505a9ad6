// Slips on the command line, in this program's words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace millrace {

/// Says on standard error what CLI11 complains of, and what was probably meant. `words` are the arguments as typed.
/// Returns the exit code.
int explain_usage_error(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words);

}  // namespace millrace
