// Updates: from a batch of rollouts to new weights.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "model/rollout.h"
#include "model/shares.h"
#include "model/transformer.h"
#include "model/update_statistics.h"
#include "model/weights.h"
#include "sim/scenario/learner_settings.h"

namespace millrace {

/// What a trainer goes on from, on the host: weights and AdamW's moments, [S][P] each.
template <typename Real>
struct TrainingState {
    std::int64_t updates = 0;
    std::vector<Real> weights;
    std::vector<Real> first_moment;
    std::vector<Real> second_moment;
};

/// The weights being trained, S replicas, with AdamW's moments.
///
/// A batch is divided into shares (shares.h). Every share's gradient is computed for itself, and a replica's are added
/// up in the order of its sequences, so the new weights are the same bytes for any number of threads, and for a replica
/// alone and among others. Rollouts without advantage have no gradient and are left out, except on backends that want
/// batches of one shape.
///
/// An importance ratio compares two policies, not two ways of adding up the same sums: generation and training round
/// differently. For rollouts that the very weights being updated have written, the log-probabilities at generation are
/// therefore replaced by those of the update's own forward pass: at staleness 0 ratios are exactly 1, by definition on
/// the update's side, whatever generation has stored. (A backend that wants batches of one shape does so for batches
/// written by the current version as a whole.) That the stored ones are right is another matter: they are the ratios of
/// stale rollouts, and differ from the forward pass by rounding only (generation_test.cpp has the limit).
template <typename P>
class Trainer {
   public:
    using Real = typename P::Real;
    using Operand = typename P::Operand;

    /// Weights start at zero, moments too. `prompt_tokens` and `sequence_tokens` are the lengths of a prompt and of
    /// the token row of a rollout.
    Trainer(Backend<P>& backend, const ModelShape& shape, int replicas, int prompt_tokens, int sequence_tokens);

    const ModelShape& shape() const { return transformer_.shape(); }
    int replicas() const { return weights_.replicas(); }
    std::int64_t updates() const { return updates_; }

    /// Starts from `weights`, [S][P] or [P] for all replicas, with zero moments at update 0.
    void start(std::span<const Real> weights);

    /// The weights in place: they change with the next update.
    const Weights<P>& weights() const { return weights_; }
    /// The weights as they are now, for as long as somebody holds them.
    std::shared_ptr<const Weights<P>> snapshot() { return pool_.copy_of(weights_); }

    /// One update with the batch, ascending the mean over its rollouts of the objective; returns what each replica
    /// saw. Rollouts need log-probabilities and advantages. A rollout may occur more than once.
    std::vector<UpdateStatistics> update(std::span<const TaskRollout* const> batch, const ObjectiveSettings& objective,
                                         const OptimizerSettings& optimizer, double learning_rate);

    /// One update of maximum likelihood of the answers.
    std::vector<UpdateStatistics> update_supervised(std::span<const TaskRollout* const> batch,
                                                    const OptimizerSettings& optimizer, double learning_rate);

    /// The gradient of the batch's mean objective, [S][P], without changing anything.
    std::vector<Real> gradient(std::span<const TaskRollout* const> batch, const ObjectiveRule& rule);

    TrainingState<Real> state() const;
    /// Goes on from `state` as if there had been no interruption. Throws std::invalid_argument at another size.
    void restore(const TrainingState<Real>& state);

   private:
    /// The batch on the host, packed share after share, and so replica after replica.
    struct Packed {
        std::vector<int> sequences;  ///< [S]: with a gradient
        std::vector<Share> shares;
        std::vector<int> share_tokens;   ///< T of each share
        std::vector<int> first_share;    ///< [S + 1]: a replica's shares, where it has more than one
        std::vector<std::size_t> first;  ///< [shares + 1]: sequences before each share
        std::vector<Token> tokens;       ///< [sequences][sequence_tokens]
        std::vector<std::int32_t> answer_tokens;
        std::vector<Real> advantage;
        std::vector<bool> fresh;                ///< written by the weights being updated
        std::vector<Real> old_log_probability;  ///< share k at first[k] * rows, dense with its T
    };

    std::vector<UpdateStatistics> step(std::span<const TaskRollout* const> batch, const ObjectiveRule& rule,
                                       const OptimizerSettings& optimizer, double learning_rate);
    void compute_gradient(std::span<const TaskRollout* const> batch, const ObjectiveRule& rule);
    void pack(std::span<const TaskRollout* const> batch, const ObjectiveRule& rule);
    void append(const TaskRollout& rollout, int replica, int share_tokens, bool supervised);
    void replace_fresh(std::size_t share, const Real* log_probability);
    void reserve();
    void run_share(int share, int lane, const ObjectiveRule& rule, double scale);
    void add_up();
    void apply(const OptimizerSettings& optimizer, double learning_rate);
    std::vector<UpdateStatistics> statistics() const;

    Backend<P>& backend_;
    Transformer<P> transformer_;
    int prompt_tokens_;
    int sequence_tokens_;
    std::int64_t updates_ = 0;
    Weights<P> weights_;
    WeightsPool<P> pool_;
    BackendArray<P, Real> first_moment_;
    BackendArray<P, Real> second_moment_;
    BackendArray<P, Real> gradient_;  ///< [S][P]
    BackendArray<P, Real> norm_;      ///< [S]
    BackendArray<P, Real> norm_scratch_;
    BackendArray<P, AdamWStep<Real>> adamw_step_;  ///< [1]

    Packed packed_;
    Extent largest_;                                         ///< that the workspaces are made for
    std::vector<std::unique_ptr<Workspace<P>>> workspaces_;  ///< of the lanes that were ever used
    BackendArray<P, Real> slots_;                            ///< the shares' gradients
    BackendArray<P, Token> tokens_;
    BackendArray<P, std::int32_t> answer_tokens_;
    BackendArray<P, Real> advantage_;
    BackendArray<P, Real> old_log_probability_;
    BackendArray<P, Real> statistics_;  ///< [sequences][sequence_statistics]
};

}  // namespace millrace
