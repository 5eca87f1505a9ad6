// Checkpoints of a learner inside a pipeline: what it has learnt and what it has in hand, right after an evaluation.
//
// The pipeline itself is not in them. Its timeline is simulated again, which costs next to nothing beside learning;
// what the learner has answered is kept, for the timeline may depend on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint.h"
#include "model/curve_point.h"
#include "model/rollout.h"

namespace millrace {

/// Real is float, or double in tests.
template <typename Real>
struct PipelineCheckpoint {
    struct Version {
        std::int64_t number = 0;
        std::vector<Real> weights;  ///< [S][P]; empty when they are those of `learner`
    };
    struct Segment {
        std::int64_t version = 0;
        std::int32_t first_token = 0;
    };
    struct Rollout {
        std::uint64_t id = 0;
        std::int32_t version_started = 0;
        bool finished = false;
        std::vector<Segment> segments;  ///< empty once it is written
        TaskRollout text;
    };
    struct OpenGroup {
        std::uint64_t group = 0;
        std::int32_t written = 0;
    };

    Checkpoint<Real> learner;
    std::string made_on;  ///< whoever resumes says which kinds of processor must agree

    std::vector<Version> versions;       ///< by number
    std::vector<std::int32_t> kept;      ///< those of them that workers have or are about to get
    std::vector<Rollout> rollouts;       ///< that are alive, by id
    std::vector<std::uint64_t> pending;  ///< begun and not written
    std::vector<OpenGroup> open_groups;  ///< by group

    std::vector<CurvePoint> curve;  ///< up to here
    double units_before = 0.0;      ///< spent at the update before this one
    std::int64_t samples = 0;
    std::int64_t staleness = 0;
    std::int64_t written = 0;

    std::uint64_t timeline = 0;               ///< digest of all that the pipeline has said
    std::int64_t verdicts = 0;                ///< asked for
    std::vector<std::uint64_t> verdict_bits;  ///< in the order in which they were asked for, 64 in a word
};

/// As write_checkpoint() and read_checkpoint().
template <typename Real>
void write_pipeline_checkpoint(const std::string& path, const PipelineCheckpoint<Real>& checkpoint);
template <typename Real>
PipelineCheckpoint<Real> read_pipeline_checkpoint(const std::string& path);

}  // namespace millrace
