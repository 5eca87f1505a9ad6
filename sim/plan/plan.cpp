#include "sim/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "sim/plan/plan_candidates.h"
#include "sim/plan/plan_comparison.h"

namespace millrace {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Beyond the largest error seen, a bound is trusted up to this share of its value, and of a staleness up to a quarter
/// of a version: what a short simulation of the best design may be off by.
constexpr double bound_margin = 0.05;
constexpr double staleness_margin = 0.25;
/// Limits on staleness count with this slack until the finalists are known.
constexpr double early_slack = 0.08;
/// Designs simulated at a time while the bounds decide.
constexpr std::size_t screen_batch = 16;
/// After so many designs, those with the least staleness, that all exceed the limits, nothing can be hoped for.
constexpr std::size_t most_infeasible = 256;

class Search {
   public:
    Search(const Calibration& calibration, const PlanQuestion& question, const PlanEffort& effort,
           const PlanEvaluator& evaluate, const PlanControl& control)
        : question_(question), effort_(effort), control_(control), all_(calibration, question, evaluate, control) {}

    Plan run() {
        screen();
        std::vector<std::size_t> finalists = halve();
        std::erase_if(finalists, [&](std::size_t i) { return !all_.feasible(i); });
        if (finalists.empty()) {
            finalists = last_resort();
        }
        summarize_screen();
        choose(finalists);
        return std::move(plan_);
    }

   private:
    bool may_be_feasible(std::size_t i) const { return all_[i].simulated() && all_.may_meet_limits(i, early_slack); }

    void simulate(const std::vector<std::size_t>& which, std::int64_t updates, std::int64_t replications,
                  const std::string& stage) {
        all_.simulate(which, updates, replications);
        if (!stage.empty()) {
            plan_.stages.push_back({stage, static_cast<std::int64_t>(which.size()), updates, replications});
            if (control_.progress) {
                control_.progress(stage + ": " + std::to_string(which.size()) + " designs, " +
                                  std::to_string(replications) + " x " + std::to_string(updates) + " updates");
            }
        }
    }

    // ---- screen ---------------------------------------------------------------------------------------------------

    void screen() {
        by_bound_.resize(all_.size());
        std::iota(by_bound_.begin(), by_bound_.end(), std::size_t{0});
        std::stable_sort(by_bound_.begin(), by_bound_.end(), [&](std::size_t a, std::size_t b) {
            return all_[a].objective_bound < all_[b].objective_bound;
        });
        by_staleness_ = by_bound_;
        std::stable_sort(by_staleness_.begin(), by_staleness_.end(), [&](std::size_t a, std::size_t b) {
            return all_[a].bound.staleness < all_[b].bound.staleness;
        });
        try_out(probes());
        while (true) {
            const std::vector<std::size_t> next = next_to_try();
            if (next.empty()) {
                break;
            }
            try_out(next);
        }
        plan_.stages.push_back(
            {"screen", static_cast<std::int64_t>(tried_.size()), effort_.first_updates, effort_.first_replications});
        if (control_.progress) {
            control_.progress("screen: " + std::to_string(tried_.size()) + " of " + std::to_string(all_.size()) +
                              " designs simulated");
        }
    }

    /// Of every store and of every k, the design with the least bound: if formulas err there, it shows.
    std::vector<std::size_t> probes() const {
        std::set<std::pair<PlanDesign::Store, std::int64_t>> stores;
        std::set<std::int64_t> intervals;
        std::vector<std::size_t> chosen;
        for (const std::size_t i : by_bound_) {
            const PlanDesign& design = all_[i].evaluation.design;
            const bool bounded = all_[i].objective_bound < infinite;
            if (bounded && (!stores.contains({design.store, design.size}) || !intervals.contains(design.sync_every))) {
                stores.insert({design.store, design.size});
                intervals.insert(design.sync_every);
                chosen.push_back(i);
            }
        }
        return chosen;
    }

    void try_out(const std::vector<std::size_t>& which) {
        simulate(which, effort_.first_updates, effort_.first_replications, "");
        for (const std::size_t i : which) {
            tried_.push_back(i);
            if (!all_[i].simulated()) {
                continue;
            }
            ratios_.push_back(all_[i].objective / all_[i].objective_bound);
            const double staleness = all_[i].evaluation.mean("staleness/mean");
            trust_staleness_ = std::min(trust_staleness_,
                                        (staleness + staleness_margin) / (all_[i].bound.staleness + staleness_margin));
            if (all_.feasible(i)) {
                best_ = std::min(best_, all_[i].objective);
            }
        }
    }

    /// Whether the bounds leave a design no chance, as far as they have proved right: `trust` is how far.
    bool hopeless(std::size_t i, double trust) const {
        const PlanCandidate& candidate = all_[i];
        if (candidate.objective_bound * trust * (1.0 - bound_margin) > best_ || candidate.objective_bound == infinite) {
            return true;
        }
        const double least = candidate.bound.staleness * trust_staleness_ * (1.0 - bound_margin) - staleness_margin;
        return least >
               std::min(question_.max_staleness.value_or(infinite), question_.max_staleness_p99.value_or(infinite));
    }

    std::vector<std::size_t> next_to_try() const {
        const bool none_yet = best_ == infinite;
        if (none_yet && tried_.size() >= most_infeasible) {
            return {};
        }
        const double trust = ratios_.empty() ? 0.0 : std::min(1.0, *std::min_element(ratios_.begin(), ratios_.end()));
        std::vector<std::size_t> next;
        for (const std::size_t i : none_yet ? by_staleness_ : by_bound_) {  // first of all, one that meets the limits
            if (next.size() == screen_batch) {
                break;
            }
            if (!all_[i].tried() && (ratios_.empty() || !hopeless(i, trust))) {
                next.push_back(i);
            }
        }
        return next;
    }

    // ---- successive halving ---------------------------------------------------------------------------------------

    std::vector<std::size_t> halve() {
        std::vector<std::size_t> left;
        for (const std::size_t i : tried_) {
            if (may_be_feasible(i)) {
                left.push_back(i);
            }
        }
        std::int64_t updates = effort_.first_updates;
        std::int64_t replications = effort_.first_replications;
        std::size_t most = static_cast<std::size_t>(effort_.finalists) * 4;
        while (updates < effort_.final_updates || replications < effort_.final_replications) {
            left = the_best_of(left, most);
            updates = std::min(updates * 2, effort_.final_updates);
            replications = std::min(replications * 2, effort_.final_replications);
            if (left.size() <= static_cast<std::size_t>(effort_.finalists)) {
                updates = effort_.final_updates;
                replications = effort_.final_replications;
            }
            simulate(left, updates, replications, "halving");
            most = std::max(most / 2, static_cast<std::size_t>(effort_.finalists));
        }
        return left;
    }

    /// At most `most` designs that meet the limits, and as many that nearly do so and would be better; of each kind
    /// those that chance may have put behind the best one.
    std::vector<std::size_t> the_best_of(std::vector<std::size_t> designs, std::size_t most) const {
        std::stable_sort(designs.begin(), designs.end(),
                         [&](std::size_t a, std::size_t b) { return all_[a].objective < all_[b].objective; });
        const auto best = std::find_if(designs.begin(), designs.end(), [&](std::size_t i) { return all_.feasible(i); });
        std::vector<std::size_t> kept;
        std::size_t meet = 0;
        std::size_t nearly = 0;
        for (auto design = designs.begin(); design != designs.end(); ++design) {
            if (all_.feasible(*design)) {
                const Estimate behind = all_.excess(*design, *best);
                const double noise = behind.half_width.value_or(0.0);
                if (meet < most && behind.mean <= std::max(bound_margin, std::min(noise, 2.0 * bound_margin))) {
                    kept.push_back(*design);
                    ++meet;
                }
            } else if (nearly < most && may_be_feasible(*design) && design < best) {
                kept.push_back(*design);
                ++nearly;
            }
        }
        return kept;
    }

    /// The finalists have all turned out to exceed a limit that they just met in short simulations. The next ones,
    /// then.
    std::vector<std::size_t> last_resort() {
        std::vector<std::size_t> left;
        for (const std::size_t i : tried_) {
            if (all_[i].evaluation.horizon.measured_updates < effort_.final_updates && all_.feasible(i)) {
                left.push_back(i);
            }
        }
        std::stable_sort(left.begin(), left.end(),
                         [&](std::size_t a, std::size_t b) { return all_[a].objective < all_[b].objective; });
        for (std::size_t from = 0; from < left.size(); from += screen_batch) {
            std::vector<std::size_t> next(
                left.begin() + static_cast<std::ptrdiff_t>(from),
                left.begin() + static_cast<std::ptrdiff_t>(std::min(from + screen_batch, left.size())));
            simulate(next, effort_.final_updates, effort_.final_replications, "last resort");
            std::erase_if(next, [&](std::size_t i) { return !all_.feasible(i); });
            if (!next.empty()) {
                return next;
            }
        }
        return {};
    }

    // ---- the choice -----------------------------------------------------------------------------------------------

    /// Those that are as good as the best one, as far as can be told, after as many replications as that takes.
    std::vector<std::size_t> contenders(const std::vector<std::size_t>& finalists) {
        std::vector<std::size_t> close = finalists;
        std::int64_t replications = effort_.final_replications;
        while (true) {
            const std::size_t best = all_.best_of(close);
            std::erase_if(close, [&](std::size_t i) { return i != best && !is_tied(all_.excess(i, best)); });
            const bool clear = std::all_of(close.begin(), close.end(), [&](std::size_t i) {
                return all_.excess(i, best).half_width.value_or(0.0) <= plan_indifference;
            });
            if (clear || replications >= effort_.most_replications) {
                return close;
            }
            replications = std::min(2 * replications, effort_.most_replications);
            simulate(close, effort_.final_updates, replications, "finalists");
            std::erase_if(close, [&](std::size_t i) { return !all_.feasible(i); });
            if (close.empty()) {  // more replications have moved them over a limit: the others of the finalists
                close = finalists;
                std::erase_if(close, [&](std::size_t i) { return !all_.feasible(i); });
                if (close.empty()) {
                    return close;
                }
            }
        }
    }

    void choose(std::vector<std::size_t> finalists) {
        const std::vector<std::size_t> close = finalists.empty() ? finalists : contenders(finalists);
        std::erase_if(finalists, [&](std::size_t i) { return !all_.feasible(i); });
        if (close.empty()) {
            plan_.nearest = nearest_design(all_, tried_, effort_);
            return;
        }
        const std::size_t best = all_.best_of(close);
        std::size_t chosen = best;
        for (const std::size_t i : close) {
            if (all_.excess(i, best).mean > plan_indifference) {
                continue;
            }
            ++plan_.equals;
            const PlanDesign& design = all_[i].evaluation.design;
            const PlanDesign& other = all_[chosen].evaluation.design;
            if (simpler(design, other) || (!simpler(other, design) && all_[i].objective < all_[chosen].objective)) {
                chosen = i;
            }
        }
        plan_.recommended = all_[chosen].evaluation;
        plan_.objective = all_.objective(chosen);
        for (const std::size_t i : finalists) {
            if (i != chosen) {
                plan_.runner_ups.push_back(compared_with(all_, chosen, i, "runner-up"));
            }
        }
        std::stable_sort(
            plan_.runner_ups.begin(), plan_.runner_ups.end(),
            [](const PlanAlternative& a, const PlanAlternative& b) { return a.excess.mean < b.excess.mean; });
        plan_.references = reference_designs(all_, by_bound_, chosen, effort_);
        plan_.deviations = deviations(all_, question_.grid, chosen, effort_);
    }

    // ---- what is said about the search ----------------------------------------------------------------------------

    void summarize_screen() {
        plan_.designs = static_cast<std::int64_t>(all_.size());
        plan_.ruled_out = static_cast<std::int64_t>(all_.size() - tried_.size());
        std::vector<std::string> kinds;  // of plan_.impossible, their numbers left out
        for (const std::size_t i : tried_) {
            const PlanEvaluation& evaluation = all_[i].evaluation;
            if (evaluation.error.empty()) {
                continue;
            }
            std::string kind = evaluation.error;
            std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
            const auto known = std::find(kinds.begin(), kinds.end(), kind) - kinds.begin();
            if (known == std::ssize(kinds)) {
                kinds.push_back(kind);
                plan_.impossible.push_back({0, evaluation.design, evaluation.error});
            }
            ++plan_.impossible[static_cast<std::size_t>(known)].designs;
        }
        std::stable_sort(plan_.impossible.begin(), plan_.impossible.end(),
                         [](const PlanRefusal& a, const PlanRefusal& b) { return a.designs > b.designs; });
        if (!ratios_.empty()) {
            std::sort(ratios_.begin(), ratios_.end());
            plan_.formula_error = {ratios_.front(), ratios_[ratios_.size() / 2], ratios_.back()};
        }
    }

    const PlanQuestion& question_;
    const PlanEffort& effort_;
    const PlanControl& control_;
    PlanCandidates all_;
    Plan plan_;
    std::vector<std::size_t> by_bound_;
    std::vector<std::size_t> by_staleness_;  ///< by the bound of it
    std::vector<std::size_t> tried_;
    std::vector<double> ratios_;  ///< simulated over bound
    double trust_staleness_ = 1.0;
    double best_ = infinite;
};

void check_question(const Calibration& calibration, const PlanQuestion& question) {
    const auto reject = [](const std::string& why) { throw std::invalid_argument(why); };
    if (question.gpus < 2) {
        reject("a plan needs at least 2 GPUs, one that generates and one that trains");
    }
    if (question.grid.sync_every.empty() || question.grid.steps_ahead.size() + question.grid.capacities.size() == 0) {
        reject("nothing is left to choose from: no store, or no interval between weight transfers");
    }
    const bool in_usd =
        question.objective == PlanObjective::usd_to_target || question.objective == PlanObjective::usd_per_update;
    if (in_usd && !calibration.measured.price) {
        reject(
            "the calibration has no price.usd_per_gpu_hour, so nothing costs USD: state it, or minimize "
            "gpu_s_to_target");
    }
}

}  // namespace

PlanEffort default_plan_effort(std::int64_t batch) {
    constexpr std::int64_t rollouts = 100'000;
    PlanEffort effort;
    effort.final_updates = std::clamp<std::int64_t>(rollouts / batch / 8 * 8, 64, 256);
    return effort;
}

Plan make_plan(const Calibration& calibration, const PlanQuestion& question, const PlanEffort& effort,
               const PlanEvaluator& evaluate, const PlanControl& control) {
    check_question(calibration, question);
    return Search(calibration, question, effort, evaluate, control).run();
}

}  // namespace millrace
