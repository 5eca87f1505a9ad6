#include "sim/plan/plan_candidates.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/run/parallel.h"
#include "sim/scenario/diagnostics.h"

namespace millrace {
namespace {

constexpr const char* period_key = "time/update_period_s";
constexpr const char* variance_key = "noise/relative_variance";

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

}  // namespace

double PlanEvaluation::mean(const std::string& metric) const {
    return estimate_of(metric).mean;
}

Estimate PlanEvaluation::estimate_of(const std::string& metric) const {
    std::vector<double> values;
    for (const PlanMetrics& run : runs) {
        if (const auto value = run.find(metric); value != run.end()) {
            values.push_back(value->second);
        }
    }
    return values.empty() ? Estimate{} : estimate(values);
}

double plan_objective(PlanObjective objective, const Calibration& calibration, std::int64_t gpus,
                      const PlanMetrics& metrics) {
    const double period_s = metrics.at(period_key);
    if (objective == PlanObjective::update_period_s) {
        return period_s;
    }
    const double gpu_s = period_s * static_cast<double>(gpus);
    const auto& price = calibration.measured.price;
    const double usd_per_gpu_s = price ? price->usd_per_gpu_hour / 3600.0 : 0.0;
    if (objective == PlanObjective::usd_per_update) {
        return gpu_s * usd_per_gpu_s;
    }
    const auto variance = metrics.find(variance_key);
    const double gpu_s_to_target = gpu_s * static_cast<double>(calibration.target.on_policy_updates) *
                                   (variance == metrics.end() ? 1.0 : variance->second);
    return objective == PlanObjective::gpu_s_to_target ? gpu_s_to_target : gpu_s_to_target * usd_per_gpu_s;
}

PlanCandidates::PlanCandidates(const Calibration& calibration, const PlanQuestion& question,
                               const PlanEvaluator& evaluate, const PlanControl& control)
    : calibration_(calibration), question_(question), evaluate_(evaluate), control_(control) {
    if (question.max_staleness) {
        limits_.push_back({"staleness/mean", *question.max_staleness});
    }
    if (question.max_staleness_p99) {
        limits_.push_back({"staleness/p99", *question.max_staleness_p99});
    }
    for (const PlanDesign& design : plan_space(question.grid, question.gpus, question.at_most)) {
        heed_interrupt();
        PlanCandidate candidate;
        candidate.bound = plan_bound(calibration, design);
        candidate.objective_bound = plan_objective(
            question.objective, calibration, design.workers + design.trainers,
            {{period_key, candidate.bound.update_period_s}, {variance_key, candidate.bound.relative_variance}});
        candidate.evaluation.design = design;
        index_.emplace(design, candidates_.size());
        candidates_.push_back(std::move(candidate));
    }
}

void PlanCandidates::simulate(const std::vector<std::size_t>& which, std::int64_t updates, std::int64_t replications) {
    struct Task {
        std::size_t candidate;
        const Scenario* scenario;
        std::int64_t replication;
    };
    std::vector<Task> tasks;
    std::vector<std::optional<Scenario>> scenarios(which.size());
    for (std::size_t k = 0; k < which.size(); ++k) {
        heed_interrupt();
        PlanCandidate& candidate = candidates_[which[k]];
        PlanEvaluation& evaluation = candidate.evaluation;
        const PlanHorizon horizon{plan_warmup(evaluation.design, candidate.bound), updates};
        if (evaluation.horizon != horizon) {
            evaluation.horizon = horizon;
            evaluation.runs.clear();
        }
        const auto done = static_cast<std::int64_t>(evaluation.runs.size());
        if (!evaluation.error.empty() || done >= replications) {
            continue;
        }
        try {
            scenarios[k] = plan_scenario(calibration_, evaluation.design, horizon, question_.seed, replications);
        } catch (const ScenarioError& error) {
            evaluation.error = error.problems().front().key + ": " + error.problems().front().message;
            evaluation.runs.clear();
            continue;
        }
        for (std::int64_t r = done; r < replications; ++r) {
            tasks.push_back({which[k], &*scenarios[k], r});
        }
    }

    std::vector<PlanMetrics> results(tasks.size());
    std::vector<std::string> errors(tasks.size());
    parallel_for(tasks.size(), control_.jobs, [&](std::size_t t) {
        heed_interrupt();
        try {
            results[t] = evaluate_(*tasks[t].scenario, tasks[t].replication);
        } catch (const PlanInterrupted&) {
            throw;
        } catch (const std::runtime_error& error) {
            errors[t] = first_line(error.what());
        }
    });
    for (std::size_t t = 0; t < tasks.size(); ++t) {
        PlanEvaluation& evaluation = candidates_[tasks[t].candidate].evaluation;
        if (!errors[t].empty()) {
            evaluation.error = errors[t];
        }
        evaluation.runs.push_back(std::move(results[t]));
    }
    for (const std::size_t i : which) {
        PlanCandidate& candidate = candidates_[i];
        if (!candidate.evaluation.error.empty()) {
            candidate.evaluation.runs.clear();
            candidate.objective = std::numeric_limits<double>::infinity();
        } else {
            candidate.objective = objective(i).mean;
        }
    }
}

void PlanCandidates::heed_interrupt() const {
    if (control_.interrupt != nullptr && control_.interrupt->load()) {
        throw PlanInterrupted("interrupted");
    }
}

double PlanCandidates::violation(std::size_t i) const {
    double worst = -std::numeric_limits<double>::infinity();
    for (const Limit& limit : limits_) {
        worst = std::max(worst, candidates_[i].evaluation.mean(limit.metric) - limit.most);
    }
    return worst;
}

bool PlanCandidates::may_meet_limits(std::size_t i, double slack) const {
    return std::all_of(limits_.begin(), limits_.end(), [&](const Limit& limit) {
        const Estimate staleness = candidates_[i].evaluation.estimate_of(limit.metric);
        const double least = slack * (limit.most + 1.0);
        return staleness.mean <= limit.most + std::clamp(staleness.half_width.value_or(0.0), least, 3.0 * least);
    });
}

std::vector<double> PlanCandidates::objectives(std::size_t i) const {
    const PlanEvaluation& evaluation = candidates_[i].evaluation;
    std::vector<double> values;
    for (const PlanMetrics& run : evaluation.runs) {
        values.push_back(plan_objective(question_.objective, calibration_,
                                        evaluation.design.workers + evaluation.design.trainers, run));
    }
    return values;
}

Estimate PlanCandidates::objective(std::size_t i) const {
    return estimate(objectives(i));
}

std::size_t PlanCandidates::best_of(const std::vector<std::size_t>& designs) const {
    return *std::min_element(designs.begin(), designs.end(), [&](std::size_t a, std::size_t b) {
        return std::pair{candidates_[a].objective, a} < std::pair{candidates_[b].objective, b};
    });
}

Estimate PlanCandidates::excess(std::size_t i, std::size_t reference) const {
    const std::vector<double> mine = objectives(i);
    const std::vector<double> theirs = objectives(reference);
    std::vector<double> ratios;
    for (std::size_t r = 0; r < std::min(mine.size(), theirs.size()); ++r) {
        ratios.push_back(mine[r] / theirs[r] - 1.0);
    }
    return estimate(ratios);
}

}  // namespace millrace
