// The folder from which a run of `millrace learn` can be resumed.
//
// It holds settings.json (the resolved learn file), state.ckpt (weights and moments after an evaluation) and
// curve.jsonl (what was reported up to there).
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "sim/scenario/learn_file.h"
#include "tools/millrace/learn_curve.h"

namespace millrace {

class CheckpointFolder {
   public:
    /// Makes the folder. With `resume` it must hold a run of the same settings: all but name, description and the
    /// number of updates. Without, it must hold none: no run is overwritten. Throws UsageError, std::runtime_error.
    CheckpointFolder(const std::string& path, bool resume, const LearnFile& file);

    std::string state_path() const { return path_ + "/state.ckpt"; }

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
    std::ofstream curve_;
};

}  // namespace millrace
