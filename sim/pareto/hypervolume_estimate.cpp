#include "sim/pareto/hypervolume_estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "sim/metrics/student_t.h"

namespace millrace {
namespace {

std::vector<const ObjectiveSamples*> with_values(std::span<const ObjectiveSamples> samples) {
    std::vector<const ObjectiveSamples*> result;
    for (const ObjectiveSamples& design : samples) {
        if (design.replications() > 0) {
            result.push_back(&design);
        }
    }
    return result;
}

}  // namespace

std::optional<double> without_rounding(double mean, std::optional<double> half_width) {
    return half_width && *half_width < 1e-12 * std::abs(mean) ? 0.0 : half_width;
}

std::vector<ObjectivePoint> mean_points(std::span<const ObjectiveSamples> samples) {
    std::vector<ObjectivePoint> means;
    for (const ObjectiveSamples* design : with_values(samples)) {
        ObjectivePoint& point = means.emplace_back();
        for (std::size_t j = 0; j < design->values.size(); ++j) {
            double sum = 0.0;
            for (const double value : design->values[j]) {
                sum += value;
            }
            point[j] = sum / static_cast<double>(design->replications());
        }
    }
    return means;
}

ObjectivePoint default_reference(std::span<const ObjectivePoint> means) {
    ObjectivePoint reference{};
    for (std::size_t j = 0; j < reference.size() && !means.empty(); ++j) {
        double best = means.front()[j];
        double worst = best;
        for (const ObjectivePoint& point : means) {
            best = std::min(best, point[j]);
            worst = std::max(worst, point[j]);
        }
        const double size = std::max(std::abs(best), std::abs(worst));
        // Points that differ by rounding alone span nothing.
        const double scale = worst - best > 1e-12 * size ? worst - best : size > 0.0 ? size : 10.0;
        reference[j] = worst + 0.1 * scale;
    }
    return reference;
}

HypervolumeEstimate estimate_hypervolume(std::span<const ObjectiveSamples> samples, const ObjectivePoint& reference,
                                         double confidence) {
    if (!(confidence > 0.0 && confidence < 1.0)) {
        throw std::invalid_argument("an interval needs a confidence between 0 and 1");
    }
    HypervolumeEstimate result;
    const std::vector<const ObjectiveSamples*> designs = with_values(samples);
    if (designs.empty()) {
        result.note = "no design has values of all objectives";
        return result;
    }
    const std::size_t objectives = designs.front()->values.size();
    const std::vector<ObjectivePoint> means = mean_points(samples);
    result.value = result.mean = hypervolume(means, reference, objectives);

    std::int64_t fewest = designs.front()->replications();
    std::int64_t most = 0;
    for (const ObjectiveSamples* design : designs) {
        fewest = std::min(fewest, design->replications());
        most = std::max(most, design->replications());
    }
    if (fewest < 2) {
        result.note = "a design with one replication has no interval";
        return result;
    }
    // Leaving replication r out moves a mean by -(x_r - mean) / (n - 1). Steps of 1 / sqrt(n (n - 1)) instead make the
    // sum of their squares the variance of the mean itself, whatever n each design has.
    std::vector<double> without(static_cast<std::size_t>(most));
    std::vector<ObjectivePoint> moved(means.size());
    double sum = 0.0;
    for (std::size_t r = 0; r < without.size(); ++r) {
        for (std::size_t i = 0; i < designs.size(); ++i) {
            moved[i] = means[i];
            const auto n = static_cast<double>(designs[i]->replications());
            if (r < static_cast<std::size_t>(designs[i]->replications())) {
                for (std::size_t j = 0; j < objectives; ++j) {
                    moved[i][j] -= (designs[i]->values[j][r] - means[i][j]) / std::sqrt(n * (n - 1.0));
                }
            }
        }
        without[r] = hypervolume(moved, reference, objectives);
        sum += without[r] - result.value;
    }
    const double mean_step = sum / static_cast<double>(most);
    double squares = 0.0;
    for (const double volume : without) {
        const double step = volume - result.value - mean_step;
        squares += step * step;
    }
    result.mean = std::max(0.0, result.value - sum);
    result.half_width =
        without_rounding(result.mean, student_t_quantile((1.0 - confidence) / 2.0, fewest - 1) * std::sqrt(squares));
    if (result.value - sum < *result.half_width) {
        result.note = "the interval is cut at 0: a hypervolume is not negative";
    }
    return result;
}

}  // namespace millrace
