#include "tools/millrace/validate_command.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/scenario/calibration.h"
#include "sim/scenario/decode.h"
#include "sim/scenario/diagnostics.h"
#include "sim/scenario/input_file.h"
#include "sim/scenario/learn_file.h"
#include "sim/sweep/sweep_file.h"
#include "tools/millrace/counted.h"

namespace millrace {
namespace {

struct Valid {
    std::string name;
    std::string resolved_json;
    std::string remarks;  ///< what there is to say beyond "ok", up to the end of its line and in further lines
};

/// How many designs a sweep comes to, and which of them cannot be run.
std::string remarks_on(const Sweep& sweep) {
    constexpr std::size_t most_listed = 10;
    std::size_t impossible = 0;
    std::string list;
    for (const Design& design : sweep.designs) {
        if (!design.error.empty() && ++impossible <= most_listed) {
            list += "\n  impossible: " + design.family;
            for (const auto& [path, value] : design.values) {
                list += ", " + path + "=" + value;
            }
            list += ": " + design.error;
        }
    }
    if (impossible > most_listed) {
        list += "\n  and " + std::to_string(impossible - most_listed) + " more are impossible";
    }
    for (const std::string& warning : sweep.warnings) {
        list += "\n  " + warning;
    }
    return ", " + counted(sweep.designs.size(), "design") +
           (impossible == 0 ? "" : ", " + std::to_string(impossible) + " impossible") + list;
}

Valid check(const std::string& file, const std::vector<std::string>& overrides) {
    const std::string text = read_input_file(file);
    if (is_sweep_file(text)) {
        const Sweep sweep = decode_sweep(text, file, overrides);
        return {sweep.name, sweep.resolved_json, remarks_on(sweep)};
    }
    if (is_learn_file(text)) {
        const LearnFile learn = decode_learn_file(text, file, overrides);
        return {learn.name, learn.resolved_json, ""};
    }
    if (is_calibration(text)) {
        const Calibration calibration = decode_calibration(text, file, overrides);
        return {calibration.name, calibration.resolved_json, ""};
    }
    const Scenario scenario = decode_scenario(text, file, overrides);
    return {scenario.name, scenario.resolved_json, ""};
}

}  // namespace

int validate_command(const ValidateOptions& options) {
    int code = exit_done;
    for (const std::string& file : options.files) {
        try {
            const Valid valid = check(file, options.overrides);
            if (options.resolved) {
                std::cout << nlohmann::ordered_json::parse(valid.resolved_json).dump(2) << '\n';
            } else {
                std::cout << file << ": ok (" << valid.name << ")" << valid.remarks << '\n';
            }
        } catch (const ScenarioError& error) {
            std::cerr << error.what() << '\n';
            code = exit_bad_input;
        }
    }
    return code;
}

}  // namespace millrace
