#include "tools/millrace/validate_command.h"

#include <iostream>

#include "sim/scenario/decode.h"
#include "sim/scenario/diagnostics.h"

namespace millrace {

int validate_command(const ValidateOptions& options) {
    int code = exit_done;
    for (const std::string& file : options.files) {
        try {
            const Scenario scenario = load_scenario(file, options.overrides);
            if (options.resolved) {
                std::cout << scenario.resolved_json << '\n';
            } else {
                std::cout << file << ": ok (" << scenario.name << ")\n";
            }
        } catch (const ScenarioError& error) {
            std::cerr << error.what() << '\n';
            code = exit_bad_input;
        }
    }
    return code;
}

}  // namespace millrace
