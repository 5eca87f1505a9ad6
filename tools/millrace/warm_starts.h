// theta_0 of several runs, each made once.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "model/warm_start.h"
#include "tools/millrace/any_backend.h"

namespace millrace {

/// Weights that runs with the same task, model and warm start begin with. They are made on one backend: another would
/// give other ones.
class WarmStarts {
   public:
    using Weights = std::shared_ptr<const WarmStart<float>>;

    /// Makes theta_0 or takes the one that was made before; from any thread, which may wait for another that makes it.
    /// Throws as warm_start() does, and WarmStartStopped after an interrupt.
    Weights get(AnyBackend& backend, const LearnerSettings& settings);

   private:
    std::mutex mutex_;
    std::vector<std::pair<LearnerSettings, Weights>> made_;
};

}  // namespace millrace
