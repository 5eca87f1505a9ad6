// A point of a learning curve.
#pragma once

#include <cstdint>
#include <vector>

#include "model/evaluation/evaluate.h"
#include "model/update_statistics.h"

namespace millrace {

/// One evaluation during a run: where the run stood, and how good the policy was.
struct CurvePoint {
    std::int32_t update = 0;
    double units = 0.0;         ///< active GPU-seconds in units of one update's training cost
    double at_s = 0.0;          ///< simulated seconds
    double active_gpu_s = 0.0;  ///< workers and trainers
    double reserved_gpu_s = 0.0;
    double staleness = 0.0;                    ///< mean over the samples trained on so far
    double replay = 0.0;                       ///< uses so far per rollout written so far
    std::vector<Evaluation> evaluation;        ///< [S]
    std::vector<UpdateStatistics> statistics;  ///< [S], means over the updates since the last point
};

}  // namespace millrace
