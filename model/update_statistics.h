// What an update tells about itself, and how large a step it takes.
#pragma once

#include <cstdint>
#include <span>

namespace millrace {

/// What one replica's update saw. Ratios are importance ratios, new over old probability, of answer tokens; sums are
/// over the sequences that have a gradient at all, so a statistic of ratios says nothing about the others.
struct UpdateStatistics {
    double trained_sequences = 0.0;       ///< sequences with a gradient
    double trained_tokens = 0.0;          ///< their answer tokens
    double mean_abs_ratio_minus_1 = 0.0;  ///< per token
    double clipped_fraction = 0.0;        ///< of tokens, those whose gradient the clip removed
    double ess_token = 1.0;        ///< effective sample size over sample size, (sum r)^2 / (n sum r^2), of tokens
    double ess_sequence = 1.0;     ///< the same with the sequences' ratios, the products of their tokens'
    double entropy = 0.0;          ///< nats per token
    double log_probability = 0.0;  ///< mean per token; of a supervised update minus the loss
    double gradient_norm = 0.0;    ///< before clipping
};

/// The mean of what several updates saw, each of them counted once.
class MeanStatistics {
   public:
    void add(const UpdateStatistics& one);
    std::int64_t updates() const { return updates_; }
    /// Before the first: UpdateStatistics as it stands there, without samples.
    UpdateStatistics mean() const;

   private:
    std::int64_t updates_ = 0;
    UpdateStatistics sum_{.ess_token = 0.0, .ess_sequence = 0.0};
};

/// From the sums of each sequence, [sequences][sequence_statistics] (kernels/ops.h), to those of the update.
template <typename Real>
UpdateStatistics summarize(std::span<const Real> sequences, double gradient_norm);

/// How the learning rate goes: linearly up over the first `warmup_updates`, then constant, then linearly down to 0
/// over the last `annealed_updates` of `updates`: the update after the last would have rate 0.
struct LearningRateSchedule {
    double peak = 0.0;
    std::int64_t warmup_updates = 0;
    std::int64_t updates = 0;  ///< 0: no end
    std::int64_t annealed_updates = 0;

    /// Of update 1, 2, ...
    double at(std::int64_t update) const;
};

}  // namespace millrace
