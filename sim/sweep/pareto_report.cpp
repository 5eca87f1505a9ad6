#include "sim/sweep/pareto_report.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "sim/pareto/adaptive_replication.h"
#include "sim/pareto/pareto_front.h"
#include "sim/sweep/sweep_growth.h"

namespace millrace {
namespace {

ParetoDesign describe(const DesignRecord& record, std::span<const SweepObjective> objectives) {
    ParetoDesign design;
    design.replications = record.replications;
    design.incomplete = record.incomplete;
    design.warmup_updates = record.warmup_updates;
    design.error = record.error.empty() ? missing_objective(record, objectives) : record.error;
    if (!design.error.empty()) {
        return design;
    }
    for (const auto& [key, values] : record.metrics) {
        std::vector<double> defined;
        for (const std::optional<double>& value : values) {
            if (value) {
                defined.push_back(*value);
            }
        }
        if (defined.empty()) {
            const auto why = record.undefined.find(key);
            design.undefined[key] = why == record.undefined.end() ? "it has no value in any replication" : why->second;
            continue;
        }
        Estimate& metric = design.metrics[key] = estimate(defined);
        metric.half_width = without_rounding(metric.mean, metric.half_width);
        if (defined.size() < values.size()) {
            metric.note += (metric.note.empty() ? "" : "; ") + std::string("defined in ") +
                           std::to_string(defined.size()) + " of " + std::to_string(values.size()) + " replications";
        }
    }
    for (const auto& [key, why] : record.undefined) {
        if (!design.metrics.contains(key)) {
            design.undefined[key] = why;
        }
    }
    return design;
}

ObjectivePoint turned(const std::vector<double>& reference, std::span<const SweepObjective> objectives) {
    if (reference.size() != objectives.size()) {
        throw std::invalid_argument("the reference point has " + std::to_string(reference.size()) + " values for " +
                                    std::to_string(objectives.size()) + " objectives");
    }
    ObjectivePoint point{};
    for (std::size_t j = 0; j < objectives.size(); ++j) {
        point[j] = toward_minimum(reference[j], objectives[j].minimize);
    }
    return point;
}

/// What the default reference point lies beyond: the means on the fronts of the families. Designs far off every front
/// would otherwise decide what hypervolumes mean.
std::vector<ObjectivePoint> family_fronts(const Sweep& sweep, std::span<const ObjectiveSamples> samples) {
    std::map<std::string, std::vector<ObjectiveSamples>> families;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        families[sweep.designs[i].family].push_back(samples[i]);
    }
    std::vector<ObjectivePoint> all;
    for (const auto& [name, own] : families) {
        const std::vector<ObjectivePoint> means = mean_points(own);
        for (const std::size_t leading : pareto_front(means)) {
            all.push_back(means[leading]);
        }
    }
    return all;
}

}  // namespace

std::int64_t incomplete_designs(const ParetoReport& report) {
    return std::count_if(report.designs.begin(), report.designs.end(),
                         [](const ParetoDesign& design) { return design.incomplete; });
}

ParetoReport pareto_report(const Sweep& sweep, std::span<const DesignRecord> records, const ParetoOptions& options) {
    ParetoReport report;
    report.confidence = options.confidence;
    report.looks = replication_looks(sweep.replications);
    std::vector<ObjectiveSamples> samples;
    for (const DesignRecord& record : records) {
        report.designs.push_back(describe(record, sweep.objectives));
        samples.push_back(objective_samples(record, sweep.objectives));
    }
    const std::vector<MembershipDecision> decisions = decide_membership(samples, {report.confidence, report.looks});
    for (std::size_t i = 0; i < decisions.size(); ++i) {
        report.designs[i].decision = decisions[i];
    }

    const ObjectivePoint reference = options.reference ? turned(*options.reference, sweep.objectives)
                                                       : default_reference(family_fronts(sweep, samples));
    for (std::size_t j = 0; j < sweep.objectives.size(); ++j) {
        report.reference.push_back(toward_minimum(reference[j], sweep.objectives[j].minimize));
    }
    report.hypervolume = estimate_hypervolume(samples, reference, options.confidence);
    for (const Design& design : sweep.designs) {
        const auto known = std::find_if(report.families.begin(), report.families.end(),
                                        [&](const auto& family) { return family.first == design.family; });
        if (known != report.families.end()) {
            continue;
        }
        std::vector<ObjectiveSamples> own;
        for (std::size_t i = 0; i < samples.size(); ++i) {
            if (sweep.designs[i].family == design.family) {
                own.push_back(samples[i]);
            }
        }
        report.families.emplace_back(design.family, estimate_hypervolume(own, reference, options.confidence));
    }

    std::vector<ObjectivePoint> points(samples.size());
    std::vector<std::size_t> front;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (decisions[i].compared) {
            points[i] = mean_points({&samples[i], 1}).front();
            if (decisions[i].leads_by_means) {
                front.push_back(i);
            }
        }
    }
    report.refinement = refine_frontier(sweep.designs, points, front, sweep.objectives.size(),
                                        {.most = options.most_proposals}, design_maker(sweep));
    return report;
}

}  // namespace millrace
