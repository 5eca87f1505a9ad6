// A learner: a policy that is trained on a task, in S replicas. It knows nothing of time: whoever drives it says which
// policy version writes a group and which rollouts an update uses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "model/checkpoint.h"
#include "model/evaluation/evaluate.h"
#include "model/generation.h"
#include "model/rollout.h"
#include "model/tasks/task.h"
#include "model/training.h"
#include "sim/scenario/learner_settings.h"

namespace millrace {

template <typename P>
class TaskLearner {
   public:
    using Real = typename P::Real;

    /// One replica for each seed, all starting from the weights `theta_0` [P]. The seeds choose the replicas' prompts
    /// and sampling. Throws std::invalid_argument when the settings make no sense.
    TaskLearner(Backend<P>& backend, const LearnerSettings& settings, std::span<const std::uint64_t> seeds,
                std::span<const Real> theta_0);

    const Task& task() const { return task_; }
    const LearnerSettings& settings() const { return settings_; }
    int replicas() const { return trainer_.replicas(); }
    std::int64_t version() const { return trainer_.updates(); }
    const LearnerCounters& counters() const { return counters_; }
    std::span<const std::int64_t> generated_tokens() const { return generated_tokens_; }  ///< [S], of answers
    std::span<const std::int64_t> trained_tokens() const { return trained_tokens_; }      ///< [S], of answers

    /// The policy as it is now, for as long as somebody holds it.
    std::shared_ptr<const Weights<P>> snapshot() { return trainer_.snapshot(); }
    /// A policy that was kept elsewhere, [S][P], as version `version`.
    std::shared_ptr<const Weights<P>> policy_of(std::span<const Real> weights, std::int64_t version) const;
    /// The policy in place: it changes with the next update.
    const Weights<P>& policy() const { return trainer_.weights(); }

    /// The rollouts of these ids, written by `policy`, with rewards and without advantages. TaskRollout `id` answers
    /// prompt id / group_size of the replicas' streams; the id addresses its random numbers too, so that who writes
    /// what when changes nothing but the policy. Whole groups in a row are the fastest.
    std::vector<TaskRollout> generate(const Weights<P>& policy, std::span<const std::uint64_t> ids, int group_size);

    /// Has `policy` write the answers of these rollouts anew from answer token `first_token` >= 1 on, where they have
    /// not ended before it. What was there before stays, with its log-probabilities, and the policy reads it as its
    /// own: the keys and values of the earlier tokens are those of the new weights.
    void rewrite(const Weights<P>& policy, std::span<const std::uint64_t> ids, std::span<TaskRollout* const> rollouts,
                 int first_token);

    /// `groups` whole groups of which no rollout has been generated in this way before, with advantages.
    std::vector<TaskRollout> generate_next(const Weights<P>& policy, int groups, int group_size);

    /// From the rewards of a complete group to its advantages.
    void set_advantages(std::span<TaskRollout* const> group) const;

    /// One update with the batch; its rollouts may come from any policy version.
    std::vector<UpdateStatistics> update(std::span<const TaskRollout* const> batch);

    std::vector<Evaluation> evaluate(const Weights<P>& policy) {
        return millrace::evaluate(generator_, task_, settings_.evaluation, policy);
    }

    /// Everything that decides what comes next, except rollouts that others keep.
    Checkpoint<Real> save() const;
    /// Throws std::invalid_argument when the checkpoint is of another shape, task or number of replicas.
    void restore(const Checkpoint<Real>& checkpoint);

   private:
    LearnerSettings settings_;
    Task task_;
    ModelShape shape_;
    std::vector<std::uint64_t> seeds_;
    Backend<P>& backend_;
    Generator<P> generator_;
    std::vector<std::unique_ptr<Generator<P>>> continuations_;  ///< [first token], made when first needed
    Trainer<P> trainer_;
    std::uint64_t theta_0_hash_;
    LearnerCounters counters_;
    std::vector<std::int64_t> generated_tokens_;
    std::vector<std::int64_t> trained_tokens_;
};

}  // namespace millrace
