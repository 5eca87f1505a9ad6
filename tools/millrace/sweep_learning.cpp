#include "tools/millrace/sweep_learning.h"

#include <iostream>
#include <utility>

#include "tools/millrace/any_backend.h"
#include "tools/millrace/pipeline_learning.h"
#include "tools/millrace/warm_starts.h"

namespace millrace {

SweepLearning::SweepLearning(std::string backend)
    : backend_(std::move(backend)), warm_starts_(std::make_unique<WarmStarts>()) {}

SweepLearning::~SweepLearning() = default;

std::string SweepLearning::open_device(bool speaks) const {
    const BackendChoice chosen = open_backend(backend_, 1);
    if (!chosen.remark.empty() && speaks) {
        std::cerr << chosen.remark << '\n';
    }
    return describe(chosen.backend);
}

RunResult SweepLearning::simulate(const Scenario& scenario, const RunOptions& options) {
    if (!scenario.learner) {
        return run_replications(scenario, options);
    }
    // Learners go by the number of the replication, counted from 0.
    Scenario up_to_here = scenario;
    up_to_here.replications += options.first_replication;
    try {
        PipelineLearning learning(up_to_here, backend_, 1, "", nullptr, warm_starts_.get());
        RunOptions run = options;
        run.make_learner = [&](std::int64_t replication) { return learning.make(replication); };
        RunResult result = run_replications(scenario, run);
        if (!result.interrupted) {
            learning.finish(result);
        }
        return result;
    } catch (const WarmStartStopped&) {
        RunResult stopped;
        stopped.interrupted = true;
        return stopped;
    }
}

}  // namespace millrace
