// The subcommands as the command line knows them: names, options, help. What each does stands in its *_command file.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/millrace/command_line.h"

namespace millrace {

/// Adds all of them. The one that is named puts what it is to do into `request`, which must outlive the parsing.
void add_subcommands(CLI::App& app, Request& request);

}  // namespace millrace
