// A learner inside a simulated pipeline: the pipeline says when and what, the policy really writes and really learns.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/backend.h"
#include "model/curve_point.h"
#include "model/pipeline_checkpoint.h"
#include "model/task_learner.h"
#include "model/weights.h"
#include "sim/pipeline/learner.h"

namespace millrace {

struct PipelineLearnerSettings {
    LearnerSettings learner;
    int group_size = 1;
    bool rollouts_switch_version = false;  ///< the in-flight policy is in_place
    double unit_gpu_s = 1.0;               ///< trainer GPU-seconds of one update
    double evaluate_every_units = 300.0;
    double budget_units = 0.0;                ///< the run ends with the first update that exceeds it; 0: never
    std::int64_t updates = 0;                 ///< or with this one
    const std::atomic<bool>* stop = nullptr;  ///< once true, the next evaluation is the last
};

/// Rollouts are written when their text is first needed, many at once: what they say depends on the versions that write
/// them, on their prompts and ids, not on when the learner gets round to it. Every version is kept from the moment it
/// is published until no worker holds it or is about to get it and all its rollouts are written.
///
/// A run is resumed by simulating its timeline again from the beginning. Until the evaluation at which the checkpoint
/// was written the learner only listens, and answers as it did then; there it has in hand what it had in hand, whatever
/// was not written yet included, and goes on as if there had been no interruption.
template <typename P>
class PipelineLearner final : public Learner {
   public:
    using Real = typename P::Real;

    /// One replica per seed, all on the same timeline.
    PipelineLearner(Backend<P>& backend, const PipelineLearnerSettings& settings, std::span<const std::uint64_t> seeds,
                    std::span<const Real> theta_0);

    /// Before the run: the first point of the curve.
    void evaluate_start() { evaluate({}); }

    /// What resume() goes on from; to be called in on_evaluated, after the first update.
    PipelineCheckpoint<Real> save() const;
    /// Before the run, in place of evaluate_start(): the curve is that of the checkpoint. Throws std::invalid_argument
    /// when the checkpoint is of another learner; the run throws std::runtime_error when its timeline is another one.
    void resume(const PipelineCheckpoint<Real>& checkpoint);

    void begin(std::uint64_t id, std::int32_t version) override;
    void switch_version(std::uint64_t id, std::int32_t version, double written) override;
    void finish(std::uint64_t id) override;
    bool correct(std::uint64_t id) override;
    void update(std::int32_t version, std::span<const std::uint64_t> batch) override;
    bool updated(std::int32_t version, const ComputeSpent& spent) override;
    void forget(std::uint64_t id) override;
    void keep(std::span<const std::int32_t> versions) override;
    bool stopped() const override { return stopped_; }

    const std::vector<CurvePoint>& curve() const { return curve_; }
    /// Whether the last update of the run has been made.
    bool at_end() const { return at_end_; }
    const TaskLearner<P>& learner() const { return learner_; }
    /// Policy versions in memory, the one being trained not counted.
    std::size_t versions_held() const;
    std::size_t rollouts_held() const { return rollouts_.size(); }
    /// What a rollout says, for tests and explanations; null before it is written and after it is forgotten.
    const TaskRollout* text(std::uint64_t id) const;
    /// Called at every evaluation that is made.
    std::function<void(const CurvePoint&)> on_evaluated;
    /// Called after the last one, or when a resumed run turns out to be at its end.
    std::function<void()> on_end;

   private:
    using Policy = std::shared_ptr<const Weights<P>>;

    /// A version that writes a rollout from some answer token on.
    struct Segment {
        Policy policy;
        int first_token = 0;
    };
    struct Place {
        std::vector<Segment> segments;  ///< empty once it is written
        std::int32_t version_started = 0;
        bool finished = false;
        TaskRollout text;
    };
    /// A group whose rollouts are not all written.
    struct OpenGroup {
        int written = 0;
    };

    /// What the pipeline can say.
    enum class Said : std::uint64_t { begin, switch_version, finish, correct, update, updated, forget, keep };

    /// Notes what the pipeline says. True while a run is resumed: then it has been dealt with already.
    bool is_known(Said said, std::initializer_list<std::uint64_t> words);
    bool resumed(std::int32_t version);
    bool stop_wanted() const { return settings_.stop != nullptr && settings_.stop->load(); }

    void write_pending();
    void write_from(const Policy& policy, int first_token, std::vector<std::uint64_t> ids);
    void note_written(std::uint64_t id);
    double units_of(const ComputeSpent& spent) const;
    double evaluation_after(double units) const;
    void evaluate(const ComputeSpent& spent);

    PipelineLearnerSettings settings_;
    TaskLearner<P> learner_;
    std::map<std::int32_t, Policy> versions_;  ///< that workers have or are about to get
    std::unordered_map<std::uint64_t, Place> rollouts_;
    std::vector<std::uint64_t> pending_;  ///< begun and not written, in the order in which they began
    std::unordered_map<std::uint64_t, OpenGroup> open_groups_;

    std::vector<CurvePoint> curve_;
    double next_evaluation_units_ = 0.0;
    bool at_end_ = false;
    std::vector<MeanStatistics> since_;  ///< the last point, [S]
    std::int64_t samples_ = 0;
    std::int64_t staleness_ = 0;
    std::int64_t written_ = 0;

    double units_before_ = 0.0;   ///< at the last update but one
    std::uint64_t timeline_ = 0;  ///< digest of what the pipeline has said
    std::int64_t verdicts_ = 0;
    std::vector<std::uint64_t> verdict_bits_;
    std::int32_t resume_at_ = 0;  ///< the update until which the learner only listens; 0: none
    std::uint64_t timeline_at_resume_ = 0;
    bool stopped_ = false;
};

}  // namespace millrace
