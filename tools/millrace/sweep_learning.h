// The learners of a sweep: what makes a design with a learner more than its timeline.
#pragma once

#include <memory>
#include <string>

#include "sim/run/replications.h"

namespace millrace {

class WarmStarts;

class SweepLearning {
   public:
    /// `backend` is the choice on the command line.
    explicit SweepLearning(std::string backend);
    ~SweepLearning();
    SweepLearning(const SweepLearning&) = delete;
    SweepLearning& operator=(const SweepLearning&) = delete;

    /// Opens the device, so that it is known to be there before anything is simulated: its description. Says on
    /// standard error, where `speaks`, why it is not a faster one. Throws std::runtime_error when it is not there.
    std::string open_device(bool speaks) const;

    /// For SweepRunOptions::simulate. Designs with the same task, model and warm start begin with the same theta_0,
    /// which is made once.
    RunResult simulate(const Scenario& scenario, const RunOptions& options);

   private:
    std::string backend_;
    std::unique_ptr<WarmStarts> warm_starts_;
};

}  // namespace millrace
