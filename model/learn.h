// Reinforcement learning without a pipeline: generate with the newest policy, update, repeat. What `millrace learn`
// runs, and the yardstick for everything that happens with stale rollouts.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "model/evaluation/evaluate.h"
#include "model/training.h"
#include "sim/scenario/learner_settings.h"

namespace millrace {

struct LearnSettings {
    LearnerSettings learner;
    std::int64_t updates = 1000;            ///< in all, those before a resumed checkpoint included
    std::int64_t batch = 64;                ///< rollouts per update, a multiple of the group size
    std::int64_t group_size = 8;            ///< rollouts of one prompt
    std::vector<std::uint64_t> seeds{1};    ///< one replica each: seeds choose prompts and sampling, theta_0 is shared
    std::optional<std::string> resume;      ///< a checkpoint of the same settings: goes on as if never interrupted
    std::optional<std::string> checkpoint;  ///< written after every evaluation and at the end; replaced in one step
};

/// theta_0, once it exists.
struct LearnStart {
    std::string theta_0_hash;             ///< 16 hexadecimal digits
    std::size_t parameters = 0;           ///< of one replica
    std::int64_t supervised_updates = 0;  ///< made just now; 0 when theta_0 came from a file
    std::int64_t update = 0;              ///< > 0 after a resume
};

struct LearnReplicaReport {
    std::uint64_t seed = 0;
    Evaluation evaluation;
    UpdateStatistics mean;              ///< over the updates since the last report; zeros at update 0
    double reward = 0.0;                ///< mean of the rollouts of those updates
    std::int64_t generated_tokens = 0;  ///< answer tokens since update 0
    std::int64_t trained_tokens = 0;    ///< answer tokens that had a gradient, since update 0
};

struct LearnReport {
    std::int64_t update = 0;
    std::vector<LearnReplicaReport> replicas;  ///< in the order of the seeds
};

struct LearnEvents {
    std::function<void(const LearnStart&)> started;
    std::function<void(const LearnReport&)> evaluated;   ///< at update 0, every `every_updates`, and after the last
    const std::atomic<bool>* stop = nullptr;             ///< once true: finish the update, write the checkpoint, return
    const std::atomic<bool>* stop_warm_start = nullptr;  ///< once true while theta_0 is made: throw WarmStartStopped
};

struct LearnResult {
    std::string theta_0_hash;
    std::string final_hash;    ///< of the weights of all replicas
    std::int64_t updates = 0;  ///< made in all
    bool stopped = false;      ///< by `stop`, before the last update
};

/// Throws std::invalid_argument when settings contradict each other and std::runtime_error when a file cannot be used.
template <typename P>
LearnResult learn(Backend<P>& backend, const LearnSettings& settings, const LearnEvents& events = {});

}  // namespace millrace
