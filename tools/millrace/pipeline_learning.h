// What a learner adds to `millrace run`: one is made for every replication, and its curves become part of the result.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/pipeline_learner.h"
#include "sim/run/replications.h"
#include "tools/millrace/any_backend.h"
#include "tools/millrace/checkpoint_folder.h"
#include "tools/millrace/pipeline_curves.h"
#include "tools/millrace/warm_starts.h"

namespace millrace {

class PipelineLearning {
   public:
    /// Makes or reads theta_0 of a scenario that has a learner. `curve` is the file for the rows of the curves, which
    /// are written as they come and put in order at the end; empty: none. In `folder`, unless it is null, every
    /// replication keeps after each evaluation what it can be resumed from, and goes on from what is there. Throws
    /// WarmStartStopped after an interrupt, std::runtime_error when a checkpoint cannot be used. `warm_starts`, unless
    /// it is null, keeps theta_0 for others.
    PipelineLearning(const Scenario& scenario, const std::string& backend, std::int64_t jobs, const std::string& curve,
                     CheckpointFolder* folder = nullptr, WarmStarts* warm_starts = nullptr);

    /// For RunOptions::make_learner.
    std::shared_ptr<Learner> make(std::int64_t replication);

    /// After the run: puts the learning metrics into the result and the curve file into order.
    void finish(RunResult& result);

    /// The section `learner` of the result document: where learning started, the curves, quartiles over seeds.
    nlohmann::ordered_json document() const;
    /// The part of the table that is about learning.
    std::string table() const;
    const std::string& backend_name() const { return backend_name_; }
    /// Why it is not a faster one; a sentence, or empty.
    const std::string& remark() const { return remark_; }

   private:
    template <typename P>
    std::shared_ptr<Learner> make_on(std::unique_ptr<Backend<P>> backend, std::int64_t replication);
    void note(std::int64_t replication, const CurvePoint& point);
    std::uint64_t checkpoint_hash(std::int64_t replication) const;
    /// Of a replication; nothing when it has to start from the beginning.
    std::optional<PipelineCheckpoint<float>> checkpoint_of(std::int64_t replication) const;

    const Scenario& scenario_;
    FirstOrderCosts costs_;
    std::string backend_choice_;
    std::string backend_name_;
    std::string remark_;
    std::int64_t threads_;  ///< of one replication
    std::vector<float> theta_0_;
    std::string theta_0_hash_;
    CheckpointFolder* folder_;
    std::string backend_kind_;
    std::string curve_path_;
    std::ofstream curve_file_;
    std::mutex curves_mutex_;
    PipelineCurves curves_;
    std::vector<std::string> weights_hashes_;  ///< by replication, at its end; empty when it was interrupted
};

}  // namespace millrace
