#include "sim/plan/plan_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/run/formulas.h"
#include "sim/scenario/decode.h"
#include "sim/theory/noise_law.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

double number(std::int64_t n) {
    return static_cast<double>(n);
}

/// Rollouts that admission lets start before the first update, in whole groups (sim/pipeline/admission.h).
std::int64_t admitted(std::int64_t steps_ahead, std::int64_t batch, std::int64_t group) {
    return steps_ahead * batch + std::max(batch, (batch + group - 1) / group * group);
}

Json store_json(const PlanDesign& design, std::int64_t batch, std::int64_t group) {
    if (design.store == PlanDesign::Store::replay_buffer) {
        return {{"kind", "replay_buffer"}, {"capacity", design.size}, {"sampling", "uniform_with_replacement"}};
    }
    const std::int64_t least = batch + group - std::gcd(batch, group);
    return {{"kind", "transfer_queue"},
            {"capacity", std::max(admitted(design.size, batch, group), least)},
            {"order", "fifo"},
            {"overflow", "block"}};
}

Json scenario_json(const Calibration& calibration, const PlanDesign& design, const PlanHorizon& horizon,
                   std::uint64_t seed, std::int64_t replications) {
    const Json measured = Json::parse(calibration.resolved_json);
    const PipelineConfig& pipeline = calibration.measured.pipeline;
    Json scenario;
    scenario["name"] = calibration.name + "-plan";
    scenario["description"] = describe(design) + ", with the service times of " + calibration.name + ".";
    scenario["seed"] = seed;
    scenario["replications"] = replications;
    scenario["horizon"] = {{"updates", horizon.warmup_updates + horizon.measured_updates},
                           {"warmup_updates", horizon.warmup_updates}};
    for (const char* part : {"workers", "groups", "reward", "trainers"}) {
        if (measured.contains(part)) {
            scenario[part] = measured[part];
        }
    }
    scenario["workers"]["count"] = design.workers;
    scenario["trainers"]["count"] = design.trainers;
    scenario["store"] = store_json(design, pipeline.trainers.batch, pipeline.groups.size);
    scenario["weight_sync"] = measured["weight_sync"];
    scenario["weight_sync"]["every"] = design.sync_every;
    if (design.store == PlanDesign::Store::transfer_queue) {
        scenario["admission"] = {{"kind", "token_bucket"}, {"steps_ahead", design.size}};
    }
    for (const char* part : {"noise", "price"}) {
        if (measured.contains(part)) {
            scenario[part] = measured[part];
        }
    }
    return scenario;
}

/// sigma^2 of samples spread over ages 0 .. horizon, relative to a fresh one.
double relative_mean_sigma2(const NoiseLaw& law, double horizon) {
    constexpr double longest = 1e5;
    const int whole = static_cast<int>(std::clamp(std::floor(horizon), 1.0, longest));
    return mean_sigma2(law, whole) / sigma2_of_sample(law, 0.0);
}

}  // namespace

std::string describe(const PlanDesign& design) {
    std::string text = "W = " + std::to_string(design.workers) + ", T = " + std::to_string(design.trainers);
    if (design.store == PlanDesign::Store::replay_buffer) {
        text += ", replay buffer of N = " + std::to_string(design.size);
    } else {
        text += ", transfer queue " + std::to_string(design.size) + (design.size == 1 ? " step" : " steps") + " ahead";
    }
    return text + (design.sync_every == 1 ? ", weights every update"
                                          : ", weights every " + std::to_string(design.sync_every) + " updates");
}

bool simpler(const PlanDesign& a, const PlanDesign& b) {
    return std::tie(a.store, a.size, a.sync_every) < std::tie(b.store, b.size, b.sync_every);
}

PlanGrid default_plan_grid(std::int64_t batch) {
    PlanGrid grid{{0, 1, 2, 4, 8}, {}, {1, 2, 4, 8}};
    for (std::int64_t batches = 1; batches <= 64; batches *= 2) {
        grid.capacities.push_back(batches * batch);
    }
    return grid;
}

std::vector<PlanDesign> plan_space(const PlanGrid& grid, std::int64_t gpus, bool at_most) {
    std::vector<PlanDesign> designs;
    for (std::int64_t total = at_most ? 2 : gpus; total <= gpus; ++total) {
        for (std::int64_t trainers = 1; trainers < total; ++trainers) {
            const auto add = [&](PlanDesign::Store store, const std::vector<std::int64_t>& sizes) {
                for (const std::int64_t size : sizes) {
                    for (const std::int64_t every : grid.sync_every) {
                        designs.push_back({total - trainers, trainers, store, size, every});
                    }
                }
            };
            add(PlanDesign::Store::transfer_queue, grid.steps_ahead);
            add(PlanDesign::Store::replay_buffer, grid.capacities);
        }
    }
    return designs;
}

std::vector<PlanStep> plan_neighbours(const PlanGrid& grid, const PlanDesign& design) {
    std::vector<PlanStep> steps;
    if (design.trainers > 1) {
        PlanDesign changed = design;
        ++changed.workers;
        --changed.trainers;
        steps.push_back({"one GPU more generates, one fewer trains", changed});
    }
    if (design.workers > 1) {
        PlanDesign changed = design;
        --changed.workers;
        ++changed.trainers;
        steps.push_back({"one GPU fewer generates, one more trains", changed});
    }
    const auto along = [&](const std::vector<std::int64_t>& values, std::int64_t PlanDesign::*field,
                           const std::string& smaller, const std::string& larger) {
        const auto here = std::lower_bound(values.begin(), values.end(), design.*field);
        PlanDesign changed = design;
        if (here != values.begin()) {
            changed.*field = *(here - 1);
            steps.push_back({smaller, changed});
        }
        if (here != values.end() && here + 1 != values.end()) {
            changed.*field = *(here + 1);
            steps.push_back({larger, changed});
        }
    };
    if (design.store == PlanDesign::Store::replay_buffer) {
        along(grid.capacities, &PlanDesign::size, "a smaller buffer", "a larger buffer");
    } else {
        along(grid.steps_ahead, &PlanDesign::size, "fewer steps ahead", "more steps ahead");
    }
    along(grid.sync_every, &PlanDesign::sync_every, "weights more often", "weights less often");
    return steps;
}

Scenario plan_scenario(const Calibration& calibration, const PlanDesign& design, const PlanHorizon& horizon,
                       std::uint64_t seed, std::int64_t replications) {
    return decode_scenario(scenario_json(calibration, design, horizon, seed, replications).dump(), describe(design),
                           {});
}

std::string plan_scenario_file(const Calibration& calibration, const PlanDesign& design, const PlanHorizon& horizon,
                               std::uint64_t seed, std::int64_t replications) {
    return scenario_json(calibration, design, horizon, seed, replications).dump(2) + "\n";
}

PlanBound plan_bound(const Calibration& calibration, const PlanDesign& design) {
    PipelineConfig config = calibration.measured.pipeline;
    config.workers.count = design.workers;
    config.trainers.count = design.trainers;
    const bool is_queue = design.store == PlanDesign::Store::transfer_queue;
    const std::int64_t tokens = is_queue ? admitted(design.size, config.trainers.batch, config.groups.size)
                                         : std::numeric_limits<std::int64_t>::max();
    const std::int64_t active = std::min(design.workers, tokens);  // workers that have something to do
    config.workers.slots = std::min(config.workers.slots, (tokens - 1) / design.workers + 1);

    const FirstOrderCosts costs = first_order_costs(config);
    const double B = number(config.trainers.batch);
    const double train_s = costs.gpu_s_per_update / number(design.trainers);
    const double generate_s = B * costs.gpu_s_per_rollout / number(active);
    const double transfer_s = config.weight_sync.transfer_s.mean();
    const double per_update_s = transfer_s / number(design.sync_every);
    const double stall_s = config.weight_sync.trainers_wait ? per_update_s : 0.0;
    const double pause_s = config.weight_sync.in_flight == InFlight::in_place ? per_update_s : 0.0;
    const double in_flight = number(std::min(tokens, design.workers * config.workers.slots));
    const double late_versions = (number(design.sync_every) - 1.0) / 2.0;
    const NoiseConfig flat;
    const NoiseConfig& noise = config.noise ? *config.noise : flat;

    PlanBound bound;
    if (is_queue) {
        const double loop_s = (train_s + generate_s + per_update_s) / (number(design.size) + 1.0);
        bound.update_period_s = std::max({train_s + stall_s, generate_s + pause_s, loop_s});
        // Whatever waits, waits as a rollout: K updates pass while one is being made and kept. Workers with few slots
        // start it later.
        bound.staleness = std::min(number(design.size), in_flight / B) * 0.5 + late_versions;
        bound.relative_variance = relative_mean_sigma2(noise.sigma2, 2.0 * bound.staleness + 1.0);
        return bound;
    }
    const double N = number(design.size);
    bound.update_period_s = train_s + stall_s;
    const double generated = B * std::max(bound.update_period_s - pause_s, 0.0) / generate_s;
    if (!(generated > 0.0)) {
        bound.update_period_s = std::numeric_limits<double>::infinity();
        return bound;
    }
    const double horizon = N / generated;
    bound.horizon_updates = horizon;
    const double in_store = horizon / 2.0;
    const double pre_store = 0.5 * in_flight / generated;  // half: some of the slots may be closed by memory
    bound.staleness = pre_store + in_store + late_versions;
    const double repeats = 1.0 + (B - 1.0) / N;
    const double coupling =
        horizon > 1.0 ? noise.rho * (B - 1.0) * (horizon * horizon - 1.0) / (3.0 * horizon * N) : 0.0;
    bound.relative_variance = relative_mean_sigma2(noise.sigma2, horizon + 2.0 * late_versions) * repeats + coupling;
    return bound;
}

std::int64_t plan_warmup(const PlanDesign& design, const PlanBound& bound) {
    constexpr double longest = 20'000;
    const double renewal = design.store == PlanDesign::Store::replay_buffer
                               ? 1.5 * (bound.horizon_updates / 2.0 + bound.staleness)
                               : 4.0 * number(design.size + 1);
    const auto updates = static_cast<std::int64_t>(std::ceil(std::min(renewal, longest))) + 8 + design.sync_every;
    return (updates + 7) / 8 * 8;  // whole rounds of any k
}

}  // namespace millrace
