#include "sim/explain/pipeline_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "sim/pipeline/admission.h"
#include "sim/run/formulas.h"

namespace millrace {
namespace {

/// Updates between two weight transfers beyond which a graph leaves the transfers out: it would need as many vertices.
constexpr std::int64_t rarest_transfers = 1'000;

double number(std::int64_t n) {
    return static_cast<double>(n);
}

bool is_whole(double ratio) {
    return std::abs(ratio - std::round(ratio)) <= 1e-9 * std::max(1.0, ratio);
}

}  // namespace

PipelineTimes times_of(const PipelineConfig& config) {
    const WorkersConfig& workers = config.workers;
    const FirstOrderCosts costs = first_order_costs(config);
    PipelineTimes times;
    times.full_gpu_s = costs.gpu_s_per_rollout;
    times.update = costs.gpu_s_per_update / number(config.trainers.count);
    times.transfer = config.weight_sync.transfer_s.mean();
    times.slots = workers.slots;
    if (config.reward) {
        times.grading = config.reward->latency_s.mean();
        times.constant = config.reward->latency_s.is_constant();
    }
    times.constant = times.constant && config.weight_sync.transfer_s.is_constant();
    if (const auto* fixed = std::get_if<FixedTrainerService>(&config.trainers.service)) {
        times.constant = times.constant && fixed->gpu_s_per_update.is_constant();
    }
    const bool constant_tokens = workers.length.is_constant() && workers.prompt_length.is_constant();
    if (std::holds_alternative<PerTokenTrainerService>(config.trainers.service)) {
        times.constant = times.constant && constant_tokens;
    }
    if (const auto* first_order = std::get_if<FirstOrderService>(&workers.service)) {
        times.own = first_order->gpu_s_per_rollout.mean();
        times.constant = times.constant && first_order->gpu_s_per_rollout.is_constant();
    } else {
        const auto& step = std::get<StepService>(workers.service);
        const double response = std::max(1.0, workers.length.mean());
        const double squared = std::max(response * response, workers.length.second_moment());
        const double prompt = workers.prompt_length.mean();
        times.constant = times.constant && constant_tokens;
        if (constant_tokens && step.kv_cap_tokens) {
            const std::int64_t tokens = std::llround(response) + std::llround(prompt);
            times.slots = std::clamp<std::int64_t>(*step.kv_cap_tokens / tokens, 1, workers.slots);
        }
        times.shared = response * step.law.base_s;
        times.own = response * step.law.per_sequence_s +
                    step.law.per_context_token_s * (prompt * response + 0.5 * (squared - response)) +
                    step.law.prefill_per_token_s * prompt;
    }
    times.slows_down = times.slots > 1 && times.own > 0.0;
    if (times.slots < workers.slots) {  // the formula lets a worker run a part of a rollout
        times.full_gpu_s = times.shared / number(times.slots) + times.own;
    }
    return times;
}

PipelineCounts counts_of(const PipelineConfig& config) {
    PipelineCounts counts;
    counts.group = config.groups.size;
    counts.queue = std::holds_alternative<TransferQueueConfig>(config.store);
    counts.waits = counts.queue || config.trainers.fresh_per_update > 0;
    counts.per_update = config.trainers.batch;
    if (!counts.queue && counts.waits) {
        counts.per_update = config.trainers.fresh_per_update;
    } else if (!counts.queue && config.admission) {
        counts.per_update = config.admission->rollouts_per_update;
    }
    counts.first = first_batch(config);
    if (config.admission && config.admission->rollouts_per_update == counts.per_update) {
        counts.opening = opening_tokens(config);
    }
    counts.transfers = config.weight_sync.every <= rarest_transfers;
    counts.repeats = counts.transfers ? config.weight_sync.every : 1;
    if (counts.queue) {
        counts.repeats = std::lcm(counts.repeats, counts.group / std::gcd(counts.per_update, counts.group));
    }
    return counts;
}

std::vector<std::string> left_out(const PipelineConfig& config, const PipelineTimes& times,
                                  const PipelineCounts& counts) {
    std::vector<std::string> why;
    const auto* queue = std::get_if<TransferQueueConfig>(&config.store);
    const auto* buffer = std::get_if<ReplayBufferConfig>(&config.store);
    const WeightSyncConfig& sync = config.weight_sync;
    const bool workers_matter = counts.waits;
    // When an update begins, everything that was permitted is in the store.
    const bool none_in_flight = counts.opening && config.admission->steps_ahead == 0 &&
                                *counts.opening == counts.first && counts.per_update % counts.group == 0 &&
                                (!counts.queue || counts.first == counts.per_update);
    if (workers_matter && times.slows_down) {
        why.push_back("a rollout takes longer the more run beside it on its worker");
    }
    if (workers_matter && times.slots > 1 && !times.slows_down) {
        const double step_s = std::get<StepService>(config.workers.service).law.base_s;
        if (!is_whole(times.update / step_s) || !is_whole(times.grading / step_s) ||
            !is_whole(times.transfer / step_s)) {
            why.push_back("a rollout that joins a running batch waits for the next decode step");
        }
    }
    if (times.transfer > 0.0 && !counts.transfers) {
        why.push_back("weights are transferred more rarely than every " + std::to_string(rarest_transfers) +
                      " updates");
    }
    if (workers_matter && times.transfer > 0.0 && sync.in_flight == InFlight::in_place && !none_in_flight) {
        why.push_back("rollouts in flight pause while weights come in");
    }
    if (workers_matter && times.transfer > 0.0 && counts.opening && !sync.trainers_wait &&
        times.transfer > times.update) {
        why.push_back("weight transfers that take longer than an update overlap with the next ones");
    }
    if (queue != nullptr) {
        const bool runs_full = !counts.opening || queue->capacity < *counts.opening;
        if (runs_full && queue->overflow == Overflow::drop_oldest) {
            why.push_back("a full queue drops rollouts");
        } else if (runs_full && (counts.group > 1 || times.grading > 0.0)) {
            why.push_back("rollouts that find no room in the queue keep slots occupied, counted in whole groups");
        }
        if (config.trainers.fresh_per_update > 0) {
            why.push_back("an update also waits for rollouts that came in since the last one began");
        }
    }
    if (buffer != nullptr && counts.waits) {
        if (!none_in_flight) {
            why.push_back("an update counts only those fresh rollouts that came in since the last one began");
        }
        if (buffer->positive_bias_delta > 0.0) {
            why.push_back("the buffer keeps places for correct rollouts");
        }
    }
    return why;
}

}  // namespace millrace
