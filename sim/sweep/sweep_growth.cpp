#include "sim/sweep/sweep_growth.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/pareto/hypervolume_estimate.h"
#include "sim/pareto/pareto_front.h"
#include "sim/sweep/design_record.h"
#include "sim/sweep/sweep_family.h"

namespace millrace {
namespace {

/// The objectives in the first replications of a design, less being better; without values when it has failed or lacks
/// one. None: rows are missing.
std::optional<ObjectiveSamples> first_samples(const Sweep& sweep, const RowCollection& rows, std::size_t design) {
    ObjectiveSamples samples;
    bool failed = false;
    std::int64_t next = 0;
    for (const auto& [first, row] : rows.of(design)) {
        if (first != next || next >= sweep.replications.least) {
            break;
        }
        next += row.replications;
        failed = failed || !append_objectives(row, sweep.objectives, samples);
    }
    if (next < sweep.replications.least) {
        return std::nullopt;
    }
    return failed ? ObjectiveSamples{} : samples;
}

std::int64_t added(const Sweep& sweep) {
    return std::count_if(sweep.designs.begin(), sweep.designs.end(), [](const Design& d) { return d.refined; });
}

}  // namespace

DesignMaker design_maker(const Sweep& sweep) {
    return [&sweep](const std::string& name, const AxisValues& values) -> MadeDesign {
        if (sweep.families == nullptr) {
            return {std::nullopt, "the sweep has no families to make designs of"};
        }
        const auto family = std::find_if(sweep.families->begin(), sweep.families->end(),
                                         [&](const Family& one) { return one.name == name; });
        Combination made = combine(*family, fixed_changes(*family, sweep.common_seed), values);
        if (made.fault) {
            return {std::nullopt, "a constraint makes no sense of the design in the middle: " +
                                      std::string(made.fault->second.what())};
        }
        if (!made.is_design) {
            const auto violated = std::find(made.holds.begin(), made.holds.end(), false) - made.holds.begin();
            return {std::nullopt, "the design in the middle violates the constraint \"" +
                                      family->constraints[static_cast<std::size_t>(violated)].text + "\""};
        }
        if (!made.design.scenario) {
            return {std::nullopt, "the design in the middle is impossible: " + made.design.error};
        }
        const auto same = std::find_if(sweep.designs.begin(), sweep.designs.end(),
                                       [&](const Design& design) { return design.id == made.design.id; });
        if (same != sweep.designs.end()) {
            return {std::nullopt, "the design in the middle is the same scenario as " + same->id};
        }
        made.design.refined = true;
        return {std::move(made.design), ""};
    };
}

std::optional<std::vector<Design>> next_wave(const Sweep& sweep, const RowCollection& rows) {
    const std::int64_t left = sweep.most_added - added(sweep);
    if (left <= 0) {
        return std::vector<Design>{};
    }
    std::vector<ObjectivePoint> points(sweep.designs.size());
    std::vector<std::size_t> compared;
    std::vector<ObjectivePoint> compared_points;
    for (std::size_t i = 0; i < sweep.designs.size(); ++i) {
        const std::optional<ObjectiveSamples> samples = first_samples(sweep, rows, i);
        if (!samples) {
            return std::nullopt;
        }
        if (samples->replications() > 0) {
            points[i] = mean_points({&*samples, 1}).front();
            compared.push_back(i);
            compared_points.push_back(points[i]);
        }
    }
    std::vector<std::size_t> front;
    for (const std::size_t place : pareto_front(compared_points)) {
        front.push_back(compared[place]);
    }
    RefinementRules rules;
    rules.most = static_cast<std::size_t>(std::min(left, std::max<std::int64_t>(4, (sweep.most_added + 3) / 4)));
    rules.least_share = 0.5;
    Refinement refinement =
        refine_frontier(sweep.designs, points, front, sweep.objectives.size(), rules, design_maker(sweep));
    std::vector<Design> wave;
    for (ProposedDesign& proposed : refinement.proposed) {
        wave.push_back(std::move(proposed.design));
    }
    return wave;
}

void add_wave(Sweep& sweep, std::vector<Design> wave, RowCollection& rows) {
    sweep.designs.insert(sweep.designs.end(), std::make_move_iterator(wave.begin()),
                         std::make_move_iterator(wave.end()));
    rows.learn_designs(sweep);
}

bool grow(Sweep& sweep, RowCollection& rows) {
    while (std::optional<std::vector<Design>> wave = next_wave(sweep, rows)) {
        if (wave->empty()) {
            rows.refuse_waiting();
            return true;
        }
        add_wave(sweep, std::move(*wave), rows);
    }
    return false;
}

}  // namespace millrace
