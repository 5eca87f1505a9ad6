// What a pipeline is made of: the typed form of a scenario's stations, laws and policies.
//
// Field names follow the scenario's keys (`workers.count` is workers.count). A PipelineConfig that came from the
// scenario decoder is complete and consistent; sim/scenario/consistency.h states what "consistent" means.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <variant>

#include "sim/engine/distribution.h"
#include "sim/theory/compute_ratio.h"
#include "sim/theory/noise_law.h"

namespace millrace {

// ---- service laws -------------------------------------------------------------------------------------------------

/// First-order law of the paper (section 3): a rollout costs a fixed amount of GPU time, whatever runs beside it. The
/// active rollouts of a worker share its GPU equally.
struct FirstOrderService {
    Distribution gpu_s_per_rollout = Distribution::constant(1.0);
};

/// The step law of continuous batching, followed exactly: a decode step takes what `law` says, and each sequence gains
/// one token; the step in which sequences join is the one that takes longer for their prompts.
struct StepService {
    StepLaw law;
    /// Context tokens that fit in a worker's memory. A sequence joins when its prompt and its whole response still
    /// fit beside what the running ones have reserved, so nothing is ever evicted.
    std::optional<std::int64_t> kv_cap_tokens = std::nullopt;
};

/// An update costs gpu_s_per_update GPU-seconds, split evenly: C / T seconds.
struct FixedTrainerService {
    Distribution gpu_s_per_update = Distribution::constant(1.0);
};

/// An update takes parallel_s / T + serial_s seconds.
struct SplitTrainerService {
    double parallel_s = 1.0;
    double serial_s = 0.0;
};

/// An update takes gpu_s_per_token (tokens of the batch, prompts included) / T + base_s seconds.
struct PerTokenTrainerService {
    double gpu_s_per_token = 0.0;
    double base_s = 0.0;
};

// ---- stations -----------------------------------------------------------------------------------------------------

struct WorkersConfig {
    std::int64_t count = 1;  ///< W, GPUs
    std::int64_t slots = 1;  ///< most sequences a worker runs at once
    std::variant<FirstOrderService, StepService> service = FirstOrderService{};
    Distribution length = Distribution::constant(1.0);         ///< response tokens; a draw is rounded, at least 1
    Distribution prompt_length = Distribution::constant(0.0);  ///< prompt tokens, one draw per group
};

struct GroupsConfig {
    std::int64_t size = 1;  ///< G rollouts of one prompt
};

struct RewardConfig {
    Distribution latency_s = Distribution::constant(0.0);
    std::optional<std::int64_t> servers;  ///< none: every rollout is graded at once
    double correct_probability = 0.5;     ///< chance that a rollout's answer is correct (used by positive bias)
};

struct TrainersConfig {
    std::int64_t count = 1;  ///< T, GPUs
    std::int64_t batch = 1;  ///< B rollouts per update
    std::variant<FixedTrainerService, SplitTrainerService, PerTokenTrainerService> service = FixedTrainerService{};
    /// Rollouts that must have entered the store since the previous update began before the next one may begin. 0:
    /// train whenever the store can fill a batch. With `admission` this gives the paper's synchronous model.
    std::int64_t fresh_per_update = 0;
};

// ---- store --------------------------------------------------------------------------------------------------------

enum class QueueOrder {
    fifo,       ///< in the order in which rollouts came in
    lifo,       ///< the freshest first
    as_started  ///< in the order in which rollouts were started: a batch waits for its stragglers, so that under
                ///< admission control no sample is staler than steps_ahead. Needs admission and room for all it admits
};
enum class Overflow { block, drop_oldest };

/// Holds rollouts until one batch uses each of them once.
struct TransferQueueConfig {
    std::int64_t capacity = 1;  ///< rollouts
    QueueOrder order = QueueOrder::fifo;
    Overflow overflow = Overflow::block;
};

enum class Sampling {
    uniform_with_replacement,
    uniform_without_replacement,
    never_used_first  ///< without replacement; rollouts that no batch has used come first
};

/// Keeps the freshest rollouts; sampling removes nothing.
struct ReplayBufferConfig {
    std::int64_t capacity = 1;  ///< N rollouts
    Sampling sampling = Sampling::uniform_with_replacement;
    bool sharded = false;  ///< one shard of N/T per trainer, which samples its B/T from it
    /// Positive bias (paper section 6): the share of the capacity that is kept for correct rollouts which the
    /// freshest (1 - delta) N do not contain. 0 is plain FIFO eviction. delta N is rounded to a whole rollout.
    double positive_bias_delta = 0.0;
};

using StoreConfig = std::variant<TransferQueueConfig, ReplayBufferConfig>;

/// Rollouts that the store holds.
inline std::int64_t capacity(const StoreConfig& store) {
    return std::visit([](const auto& kind) { return kind.capacity; }, store);
}

/// Whether the store has to know which rollouts are correct.
inline bool keeps_correct_ones(const StoreConfig& store) {
    const auto* buffer = std::get_if<ReplayBufferConfig>(&store);
    return buffer != nullptr && buffer->positive_bias_delta > 0.0;
}

/// How many of `capacity` places positive bias `delta` keeps for correct rollouts: delta N to the nearest whole.
inline std::int64_t positive_places(std::int64_t capacity, double delta) {
    return static_cast<std::int64_t>(std::floor(delta * static_cast<double>(capacity) + 0.5));
}

// ---- control ------------------------------------------------------------------------------------------------------

enum class InFlight {
    between_rollouts,  ///< a rollout keeps the version it began with; the next one takes the newest delivered
    in_place           ///< the worker pauses for the transfer and goes on: the rollout spans versions
};

struct WeightSyncConfig {
    std::int64_t every = 1;  ///< k updates
    Distribution transfer_s = Distribution::constant(0.0);
    InFlight in_flight = InFlight::between_rollouts;
    bool trainers_wait = false;  ///< the trainers stall until every worker has the weights
};

/// Token bucket in front of the workers. A rollout takes a token to start; an update gives back rollouts_per_update of
/// them once its weights are with the workers; a rollout that is dropped gives its own back. The bucket holds
/// (steps_ahead + 1) rollouts_per_update: 0 steps ahead is the synchronous pipeline, 1 is one-step-off.
struct AdmissionConfig {
    std::int64_t steps_ahead = 0;          ///< K
    std::int64_t rollouts_per_update = 1;  ///< R; equal to the batch for a transfer queue
};

struct PipelineConfig {
    WorkersConfig workers;
    GroupsConfig groups;
    std::optional<RewardConfig> reward;  ///< none: rewards are instant and half of them correct
    TrainersConfig trainers;
    StoreConfig store = TransferQueueConfig{};
    WeightSyncConfig weight_sync;
    std::optional<AdmissionConfig> admission;  ///< none: workers never wait for permission
    std::optional<NoiseConfig> noise;
};

}  // namespace millrace
