#include "tools/millrace/validate_command.h"

#include <iostream>

#include "sim/scenario/calibration.h"
#include "sim/scenario/decode.h"
#include "sim/scenario/diagnostics.h"
#include "sim/scenario/input_file.h"
#include "sim/scenario/learn_file.h"

namespace millrace {
namespace {

struct Valid {
    std::string name;
    std::string resolved_json;
};

Valid check(const std::string& file, const std::vector<std::string>& overrides) {
    const std::string text = read_input_file(file);
    if (is_learn_file(text)) {
        const LearnFile learn = decode_learn_file(text, file, overrides);
        return {learn.name, learn.resolved_json};
    }
    if (is_calibration(text)) {
        const Calibration calibration = decode_calibration(text, file, overrides);
        return {calibration.name, calibration.resolved_json};
    }
    const Scenario scenario = decode_scenario(text, file, overrides);
    return {scenario.name, scenario.resolved_json};
}

}  // namespace

int validate_command(const ValidateOptions& options) {
    int code = exit_done;
    for (const std::string& file : options.files) {
        try {
            const Valid valid = check(file, options.overrides);
            if (options.resolved) {
                std::cout << valid.resolved_json << '\n';
            } else {
                std::cout << file << ": ok (" << valid.name << ")\n";
            }
        } catch (const ScenarioError& error) {
            std::cerr << error.what() << '\n';
            code = exit_bad_input;
        }
    }
    return code;
}

}  // namespace millrace
