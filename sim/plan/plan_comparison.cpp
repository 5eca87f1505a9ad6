#include "sim/plan/plan_comparison.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

namespace millrace {
namespace {

/// The best of those that belong, if any of them meets the limits.
std::optional<std::size_t> best_where(PlanCandidates& all, const std::vector<std::size_t>& by_bound,
                                      const PlanEffort& effort, const std::function<bool(const PlanDesign&)>& belongs) {
    constexpr std::size_t at_least = 6;
    std::vector<std::size_t> known;
    std::vector<std::size_t> further;
    for (const std::size_t i : by_bound) {
        if (!belongs(all[i].evaluation.design)) {
            continue;
        }
        if (all.feasible(i)) {
            known.push_back(i);
        } else if (!all[i].tried() && further.size() < at_least) {
            further.push_back(i);
        }
    }
    if (known.size() < at_least) {
        all.simulate(further, effort.first_updates, effort.first_replications);
        std::copy_if(further.begin(), further.end(), std::back_inserter(known),
                     [&](std::size_t i) { return all.feasible(i); });
    }
    return known.empty() ? std::nullopt : std::optional(all.best_of(known));
}

}  // namespace

bool is_tied(const Estimate& excess) {
    return excess.mean <= plan_indifference || excess.mean - excess.half_width.value_or(0.0) <= 0.0;
}

PlanAlternative compared_with(const PlanCandidates& all, std::size_t chosen, std::size_t i, std::string what) {
    PlanAlternative other{std::move(what), all[i].evaluation, {}, {}, false, false};
    if (all[i].simulated()) {
        other.objective = all.objective(i);
        other.excess = all.excess(i, chosen);
        other.feasible = all.feasible(i);
        other.tied = other.feasible && is_tied(other.excess);
    }
    return other;
}

std::vector<PlanAlternative> reference_designs(PlanCandidates& all, const std::vector<std::size_t>& by_bound,
                                               std::size_t chosen, const PlanEffort& effort) {
    const PlanDesign design = all[chosen].evaluation.design;
    std::vector<PlanAlternative> references;
    const auto add = [&](const char* what, const std::function<bool(const PlanDesign&)>& belongs) {
        if (const std::optional<std::size_t> best = best_where(all, by_bound, effort, belongs)) {
            all.simulate({*best}, effort.final_updates, effort.final_replications);
            references.push_back(compared_with(all, chosen, *best, what));
        }
    };
    const auto is_on_policy = [](const PlanDesign& other) {
        return other.store == PlanDesign::Store::transfer_queue && other.size == 0 && other.sync_every == 1;
    };
    if (!is_on_policy(design)) {
        add("on policy", is_on_policy);
    }
    const bool queue = design.store == PlanDesign::Store::transfer_queue;
    add(queue ? "best replay buffer found" : "best transfer queue found",
        [&](const PlanDesign& other) { return other.store != design.store; });
    return references;
}

std::vector<PlanAlternative> deviations(PlanCandidates& all, const PlanGrid& grid, std::size_t chosen,
                                        const PlanEffort& effort) {
    const std::vector<PlanStep> steps = plan_neighbours(grid, all[chosen].evaluation.design);
    std::vector<std::size_t> neighbours;
    for (const PlanStep& step : steps) {
        neighbours.push_back(all.index_of(step.design));
    }
    all.simulate(neighbours, effort.final_updates, effort.final_replications);
    std::vector<PlanAlternative> list;
    for (std::size_t s = 0; s < steps.size(); ++s) {
        list.push_back(compared_with(all, chosen, neighbours[s], steps[s].what));
    }
    return list;
}

std::optional<PlanEvaluation> nearest_design(PlanCandidates& all, const std::vector<std::size_t>& tried,
                                             const PlanEffort& effort) {
    std::vector<std::size_t> designs = tried;
    std::erase_if(designs, [&](std::size_t i) { return !all[i].simulated(); });
    if (designs.empty()) {
        return std::nullopt;
    }
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t i : designs) {
        least = std::min(least, all.violation(i));
    }
    std::erase_if(designs, [&](std::size_t i) { return all.violation(i) > least + plan_staleness_indifference; });
    const std::size_t nearest = *std::min_element(designs.begin(), designs.end(), [&](std::size_t a, std::size_t b) {
        const PlanDesign& one = all[a].evaluation.design;
        const PlanDesign& other = all[b].evaluation.design;
        return simpler(one, other) || (!simpler(other, one) && all[a].objective < all[b].objective);
    });
    all.simulate({nearest}, effort.final_updates, effort.final_replications);
    return all[nearest].evaluation;
}

}  // namespace millrace
