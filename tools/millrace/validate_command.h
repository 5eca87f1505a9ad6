// `millrace validate`: read scenarios, learn files and calibrations and say what is wrong with them; nothing is run.
#pragma once

#include <string>
#include <vector>

#include "tools/millrace/options.h"

namespace millrace {

struct ValidateOptions {
    std::vector<std::string> files;
    std::vector<std::string> overrides;
    bool resolved = false;  ///< print each file with its defaults instead of "ok"
};

/// Reports on every file. exit_bad_input when one of them has errors.
int validate_command(const ValidateOptions& options);

}  // namespace millrace
