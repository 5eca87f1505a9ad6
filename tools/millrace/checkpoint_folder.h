// The folder from which a run of `millrace learn` or of `millrace run` with a learner can be resumed.
//
// It holds settings.json (the resolved file) and, after evaluations, what learning goes on from: of `learn` state.ckpt
// (weights and moments) and curve.jsonl (what was reported up to there), of `run` a file for each replication with all
// of that (model/pipeline_checkpoint.h).
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "tools/millrace/learn_curve.h"

namespace millrace {

/// A line for somebody whose run was interrupted.
std::string how_to_resume(const std::string& folder);

class CheckpointFolder {
   public:
    /// Makes the folder, for a run with these settings, resolved. With `resume` it must hold a run of the same
    /// settings: all but name, description and the horizon. Without, it must hold none that has come to its first
    /// evaluation: no run is overwritten. Throws UsageError, std::runtime_error.
    CheckpointFolder(const std::string& path, bool resume, const std::string& settings);

    const std::string& path() const { return path_; }
    /// Names the settings that a resumed run must share.
    std::uint64_t settings_hash() const;

    /// Of `learn`; there only when `holds_state()`.
    std::string state_path() const { return path_ + "/state.ckpt"; }
    bool holds_state() const { return holds_state_; }
    /// Of a replication of `run`, which may be there or not.
    std::string replication_path(std::int64_t replication) const;

    /// To be called when nothing speaks against going on: from here on the run has these settings.
    void keep_settings();

    /// To be called when learning starts or goes on from `update`, before append(). Returns the curve up to there,
    /// which is nothing at update 0; what goes beyond is forgotten. Throws std::runtime_error when the curve is
    /// shorter.
    LearnCurve start(std::int64_t update, std::int64_t replications);
    void append(const std::string& lines);

   private:
    std::string settings_path() const { return path_ + "/settings.json"; }
    std::string curve_path() const { return path_ + "/curve.jsonl"; }

    std::string path_;
    std::string settings_;
    bool holds_state_ = false;  ///< of any replication
    std::ofstream curve_;
};

}  // namespace millrace
