// The learners of a sweep: what makes a design with a learner more than its timeline.
#pragma once

#include <string>

#include "sim/sweep/replications.h"
#include "tools/millrace/warm_starts.h"

namespace millrace {

class SweepLearning {
   public:
    explicit SweepLearning(std::string backend) : backend_(std::move(backend)) {}

    /// For SweepRunOptions::simulate. Designs with the same task, model and warm start begin with the same theta_0,
    /// which is made once.
    RunResult simulate(const Scenario& scenario, const RunOptions& options);

   private:
    std::string backend_;
    WarmStarts warm_starts_;
};

}  // namespace millrace
