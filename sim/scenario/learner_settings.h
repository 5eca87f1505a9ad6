// What a scenario says about the learner: plain numbers. sim/ only reads them; model/ knows what they mean.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace millrace {

enum class TaskKind { sort, countdown, addition };

struct TaskSettings {
    TaskKind kind = TaskKind::sort;
    std::int64_t size = 8;  ///< sort: digits; countdown: numbers (3 or 4); addition: most digits of an operand

    bool operator==(const TaskSettings&) const = default;
};

struct ModelSettings {
    std::int64_t layers = 2;
    std::int64_t width = 32;
    std::int64_t heads = 2;
    std::int64_t mlp_width = 128;
    std::optional<std::int64_t> context;  ///< tokens of prompt and answer; none: exactly what the task needs

    bool operator==(const ModelSettings&) const = default;
};

struct OptimizerSettings {
    double learning_rate = 2e-4;
    double beta1 = 0.9;
    double beta2 = 0.99;
    double epsilon = 1e-8;
    double weight_decay = 0.0;
    double max_gradient_norm = 1.0;    ///< 0: no clipping
    std::int64_t warmup_updates = 10;  ///< the learning rate rises linearly over them

    bool operator==(const OptimizerSettings&) const = default;
};

/// Supervised fine-tuning that makes theta_0, or a checkpoint that holds it.
struct WarmStartSettings {
    std::optional<std::string> checkpoint;       ///< path of theta_0; the rest is then not used
    std::optional<std::string> checkpoint_hash;  ///< what its weights must hash to
    std::uint64_t seed = 1;
    std::int64_t updates = 200;
    std::int64_t batch = 64;
    double annealed_fraction = 0.5;  ///< the learning rate falls linearly to 0 over this last part
    OptimizerSettings optimizer{2e-3, 0.9, 0.98, 1e-8, 0.0, 1.0, 50};

    bool operator==(const WarmStartSettings&) const = default;
};

enum class Algorithm { grpo, asymre, reinforce };
/// Whether a token's term of the objective has the token's own importance ratio, or the product of all of the answer's
/// with the gradient flowing through the token's own probability: averaged over an answer o that is 1 / |o| of the
/// gradient of advantage times product.
enum class RatioLevel { token, sequence };

struct ObjectiveSettings {
    Algorithm algorithm = Algorithm::grpo;
    RatioLevel ratio = RatioLevel::token;  ///< grpo, reinforce
    double clip_low = 0.2;                 ///< grpo
    double clip_high = 0.2;                ///< grpo; infinity: no clip
    double shift = -0.1;                   ///< asymre: the weight of a rollout is reward - (group mean + shift)
};

struct EvaluationSettings {
    std::int64_t every_updates = 50;     ///< in a learn file
    double every_units = 300.0;          ///< in a scenario: compute, in units of one update's training cost
    std::int64_t sampled_prompts = 128;  ///< held-out prompts for pass@k
    std::int64_t samples = 16;           ///< answers to each of them
    std::int64_t greedy_prompts = 512;
};

struct LearnerSettings {
    TaskSettings task;
    ModelSettings model;
    WarmStartSettings warm_start;
    ObjectiveSettings objective;
    OptimizerSettings optimizer;
    EvaluationSettings evaluation;
    // In a scenario only: a learn file has replications alone.
    std::int64_t replicas = 1;      ///< models that learn on one timeline, from their own prompts and samples
    double target_pass_at_1 = 0.5;  ///< learner/compute_to_target is the compute until pass@1 reaches it
};

}  // namespace millrace
