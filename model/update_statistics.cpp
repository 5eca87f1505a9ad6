#include "model/update_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/ops.h"

namespace millrace {

template <typename Real>
UpdateStatistics summarize(std::span<const Real> sequences, double gradient_norm) {
    UpdateStatistics summary;
    summary.gradient_norm = gradient_norm;
    double sum[sequence_statistics] = {};
    double ratio = 0.0;  // of sequences
    double ratio_squared = 0.0;
    const std::size_t count = sequences.size() / sequence_statistics;
    for (std::size_t i = 0; i < count; ++i) {
        const auto one = sequences.subspan(i * sequence_statistics, sequence_statistics);
        for (std::size_t j = 0; j < sequence_statistics; ++j) {
            sum[j] += static_cast<double>(one[j]);
        }
        const double r = std::exp(static_cast<double>(one[stat_log_ratio]));
        ratio += r;
        ratio_squared += r * r;
    }
    if (count == 0) {
        return summary;
    }
    const double tokens = sum[stat_tokens];
    summary.trained_sequences = static_cast<double>(count);
    summary.trained_tokens = tokens;
    summary.mean_abs_ratio_minus_1 = sum[stat_abs_ratio_minus_1] / tokens;
    summary.clipped_fraction = sum[stat_clipped] / tokens;
    summary.ess_token = sum[stat_ratio] * sum[stat_ratio] / (tokens * sum[stat_ratio_squared]);
    summary.ess_sequence = ratio * ratio / (static_cast<double>(count) * ratio_squared);
    summary.entropy = sum[stat_entropy] / tokens;
    summary.log_probability = sum[stat_log_probability] / tokens;
    return summary;
}

namespace {

/// combine(into, from) of every number.
template <typename Combine>
void each_number(UpdateStatistics& into, const UpdateStatistics& from, const Combine& combine) {
    combine(into.trained_sequences, from.trained_sequences);
    combine(into.trained_tokens, from.trained_tokens);
    combine(into.mean_abs_ratio_minus_1, from.mean_abs_ratio_minus_1);
    combine(into.clipped_fraction, from.clipped_fraction);
    combine(into.ess_token, from.ess_token);
    combine(into.ess_sequence, from.ess_sequence);
    combine(into.entropy, from.entropy);
    combine(into.log_probability, from.log_probability);
    combine(into.gradient_norm, from.gradient_norm);
}

}  // namespace

void MeanStatistics::add(const UpdateStatistics& one) {
    each_number(sum_, one, [](double& into, double from) { into += from; });
    ++updates_;
}

UpdateStatistics MeanStatistics::mean() const {
    UpdateStatistics mean;
    if (updates_ > 0) {
        each_number(mean, sum_, [this](double& into, double sum) { into = sum / static_cast<double>(updates_); });
    }
    return mean;
}

template UpdateStatistics summarize(std::span<const float>, double);
template UpdateStatistics summarize(std::span<const double>, double);

double LearningRateSchedule::at(std::int64_t update) const {
    double rate = peak;
    if (update < warmup_updates) {
        rate *= static_cast<double>(update) / static_cast<double>(warmup_updates);
    }
    const std::int64_t left = updates + 1 - update;
    if (updates > 0 && left < annealed_updates) {
        rate *= static_cast<double>(std::max<std::int64_t>(left, 0)) / static_cast<double>(annealed_updates);
    }
    return rate;
}

}  // namespace millrace
