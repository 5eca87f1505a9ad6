#include "sim/run/formulas.h"

#include <algorithm>
#include <cmath>

#include "sim/theory/compute_ratio.h"
#include "sim/theory/queue_staleness.h"

namespace millrace {
namespace {

double number(std::int64_t n) {
    return static_cast<double>(n);
}

/// Decode concurrency per worker: the slots, or what the key-value memory holds of responses that occupy their slot in
/// proportion to their length.
double concurrency(const WorkersConfig& workers, const StepService& service, const TokenMoments& tokens) {
    const auto slots = number(workers.slots);
    if (!service.kv_cap_tokens) {
        return slots;
    }
    const double reserved = (tokens.prompt_times_response + tokens.response_squared) / tokens.response;
    return std::clamp(number(*service.kv_cap_tokens) / reserved, 1.0, slots);
}

/// A response has at least one token, whatever its law says.
TokenMoments token_moments(const WorkersConfig& workers) {
    const double response = std::max(1.0, workers.length.mean());
    return independent_tokens(workers.prompt_length.mean(), response,
                              std::max(response * response, workers.length.second_moment()));
}

/// Rollouts that all workers run at once when nothing keeps them waiting.
double rollouts_in_flight(const WorkersConfig& workers) {
    const auto* step = std::get_if<StepService>(&workers.service);
    return number(workers.count) *
           (step != nullptr ? concurrency(workers, *step, token_moments(workers)) : number(workers.slots));
}

double gpu_s_per_rollout(const WorkersConfig& workers) {
    if (const auto* first_order = std::get_if<FirstOrderService>(&workers.service)) {
        return first_order->gpu_s_per_rollout.mean();
    }
    const auto& step = std::get<StepService>(workers.service);
    const TokenMoments tokens = token_moments(workers);
    return full_slots_gpu_s_per_rollout(step.law, tokens, concurrency(workers, step, tokens));
}

double gpu_s_per_update(const PipelineConfig& config) {
    const auto T = number(config.trainers.count);
    if (const auto* fixed = std::get_if<FixedTrainerService>(&config.trainers.service)) {
        return fixed->gpu_s_per_update.mean();
    }
    if (const auto* split = std::get_if<SplitTrainerService>(&config.trainers.service)) {
        return split->parallel_s + T * split->serial_s;
    }
    const auto& per_token = std::get<PerTokenTrainerService>(config.trainers.service);
    const double tokens = config.workers.prompt_length.mean() + config.workers.length.mean();
    return per_token.gpu_s_per_token * number(config.trainers.batch) * tokens + T * per_token.base_s;
}

/// E[max of `count` draws] / E[one draw], by the midpoint rule on the survival function of the maximum.
double tailness(const Distribution& law, std::int64_t count) {
    if (law.is_constant() || count == 1) {
        return 1.0;
    }
    constexpr int points = 20000;
    const double mean = law.mean();
    double sum = 0.0;
    for (int i = 0; i < points; ++i) {
        const double t = (i + 0.5) / points;  // x = mean t / (1 - t) maps (0, 1) onto (0, infinity)
        const double below = law.cdf(mean * t / (1.0 - t));
        double all_below = 1.0;
        double power = below;
        for (std::int64_t n = count; n > 0; n /= 2) {  // below^count, by squaring
            if (n % 2 == 1) {
                all_below *= power;
            }
            power *= power;
        }
        sum += (1.0 - all_below) / ((1.0 - t) * (1.0 - t));
    }
    return sum / points;
}

bool flat(const NoiseLaw& law) {
    const auto* floor_growth = std::get_if<FloorGrowthNoise>(&law);
    return floor_growth != nullptr && floor_growth->growth == 0.0;
}

/// Variance relative to an on-policy batch under flat, uncoupled noise: only repeats within a batch add to it.
double flat_relative_variance(const PipelineConfig& config) {
    const auto* buffer = std::get_if<ReplayBufferConfig>(&config.store);
    if (buffer == nullptr || buffer->sampling != Sampling::uniform_with_replacement) {
        return 1.0;
    }
    const double shards = buffer->sharded ? number(config.trainers.count) : 1.0;
    return 1.0 + (number(config.trainers.batch) / shards - 1.0) / (number(buffer->capacity) / shards);
}

}  // namespace

FirstOrderCosts first_order_costs(const PipelineConfig& config) {
    FirstOrderCosts costs{gpu_s_per_rollout(config.workers), gpu_s_per_update(config), 0.0};
    costs.mu = number(config.trainers.batch) * costs.gpu_s_per_rollout / costs.gpu_s_per_update;
    return costs;
}

std::map<std::string, double> formulas(const Scenario& scenario, const FirstOrderCosts& costs) {
    const PipelineConfig& config = scenario.pipeline;
    const auto W = number(config.workers.count);
    const auto T = number(config.trainers.count);
    const auto B = number(config.trainers.batch);
    const auto* buffer = std::get_if<ReplayBufferConfig>(&config.store);
    const auto* queue = std::get_if<TransferQueueConfig>(&config.store);

    std::map<std::string, double> formula;
    formula["rollouts/trained_per_update"] = B;
    if (config.noise && flat(config.noise->sigma2) && config.noise->rho == 0.0) {
        formula["noise/relative_variance"] = flat_relative_variance(config);
    }
    formula["compute/gamma"] = compute_ratio(W, T, costs.mu);
    if (config.admission || config.trainers.fresh_per_update > 0) {
        // Who waits for whom now depends on the spread of the service times: no closed form here.
        const bool drops = queue != nullptr && queue->overflow == Overflow::drop_oldest;
        if (config.admission && !drops) {
            const double fresh = number(config.admission->rollouts_per_update);
            formula["rollouts/generated_per_update"] = fresh;
            formula["replay/mean"] = mean_replay_ratio_sync(B, fresh);
        }
        return formula;
    }

    // Per update, the weight transfer stalls the trainers, pauses the workers, both or neither.
    const double transfer_s = config.weight_sync.transfer_s.mean() / number(config.weight_sync.every);
    const double stall_s = config.weight_sync.trainers_wait ? transfer_s : 0.0;
    const double pause_s = config.weight_sync.in_flight == InFlight::in_place ? transfer_s : 0.0;
    const double trainer_period_s = costs.gpu_s_per_update / T + stall_s;
    const double batch_s = B * costs.gpu_s_per_rollout / W;  // in which the workers make a batch
    const double period_s = buffer != nullptr ? trainer_period_s : std::max(trainer_period_s, batch_s + pause_s);
    const bool drops = queue != nullptr && queue->overflow == Overflow::drop_oldest;
    const double generated = buffer != nullptr || drops ? B * (period_s - pause_s) / batch_s : B;

    const double baseline_gpu_s = costs.gpu_s_per_update * (1.0 + costs.mu);
    formula["compute/gamma_simulated"] = (W + T) * period_s / baseline_gpu_s;
    formula["compute/reserved_gpu_s_per_update"] = (W + T) * period_s;
    if (scenario.price) {
        formula["compute/usd_per_update"] = (W + T) * period_s / 3600.0 * scenario.price->usd_per_gpu_hour;
    }
    formula["time/update_period_s"] = period_s;
    if (formula.contains("noise/relative_variance")) {
        formula["noise/relative_compute_to_target"] =
            formula["compute/gamma_simulated"] * formula["noise/relative_variance"];
    }
    if (!(generated > 0.0)) {
        return formula;  // workers that pause for longer than an update takes
    }
    formula["compute/effective_mu"] = effective_mu_of_replay_ratio(B / generated, W, T);
    formula["rollouts/generated_per_update"] = generated;
    formula["replay/mean"] = B / generated;

    // Staleness: only where rollouts go from worker to store without delay and take every version at once.
    if (config.reward || config.weight_sync.every != 1 || config.weight_sync.transfer_s.maximum() > 0.0) {
        return formula;
    }
    const bool first_order = std::holds_alternative<FirstOrderService>(config.workers.service);
    const Distribution& work =
        first_order ? std::get<FirstOrderService>(config.workers.service).gpu_s_per_rollout : config.workers.length;
    const double in_flight = rollouts_in_flight(config.workers);
    if (buffer != nullptr) {
        // Little's law for the rollouts in flight.
        formula["staleness/pre_store"] = in_flight * tailness(work, config.groups.size) / generated;
        if (buffer->positive_bias_delta == 0.0 && buffer->sampling != Sampling::never_used_first) {
            // The store spans H = N / R updates and is sampled right after the version has moved on: an age of a
            // updates is ceil(a) versions, a uniform on (0, H).
            const double horizon = number(buffer->capacity) / generated;
            const double whole = std::floor(horizon);
            formula["staleness/in_store"] = (whole + 1.0) * (horizon - whole / 2.0) / horizon;
        }
    } else if (drops && queue->order == QueueOrder::fifo) {
        const TransferQueueLoad load{in_flight, B, number(queue->capacity) / B, trainer_period_s / batch_s,
                                     tailness(work, config.groups.size)};
        formula["staleness/pre_store"] = pre_store_staleness(load);
        formula["staleness/in_store"] = in_store_staleness(load);
    }
    if (formula.contains("staleness/in_store")) {
        formula["staleness/mean"] = formula["staleness/pre_store"] + formula["staleness/in_store"];
    }
    return formula;
}

}  // namespace millrace
