// A plan as people and programs read it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/plan/plan_simulation.h"

namespace millrace {

/// The names of the objectives, as --minimize takes them.
const char* objective_name(PlanObjective objective);
PlanObjective objective_of(const std::string& name);

/// A plan with what else its report says. Texts and parts are empty when nothing is recommended.
struct PlanReport {
    const Calibration& calibration;
    const PlanQuestion& question;
    const Plan& plan;
    std::string binds;  ///< why updates are not faster
    VarianceParts variance;
    std::string scenario;                          ///< the runnable scenario file
    std::string answer() const;                    ///< the recommendation, or that there is none, in sentences
    std::string equals_text() const;               ///< how many are as good, and by what one of them was chosen
    std::string why_variance() const;              ///< what staleness and reuse cost
    std::vector<std::string> assumptions() const;  ///< what no measurement stands behind
};

nlohmann::ordered_json plan_document(const PlanReport& report);
std::string plan_table(const PlanReport& report);

}  // namespace millrace
