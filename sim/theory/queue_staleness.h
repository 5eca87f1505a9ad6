// Closed-form staleness of a transfer queue that drops the oldest group when it overflows, and of its relatives.
//
// Source: Dong, Goel, Yu, "Predicting and Controlling Staleness in Fully Asynchronous RL Training" (2026); the variance
// law and the value at balance are our own. Their assumptions: steady state, every rollout used at most once, weights
// reach the workers at once and in flight, a deterministic training time, no reward latency, lengths independent.
//
// Staleness counts policy versions between the start of a group's generation and its use; the part before the group is
// complete is *pre-store*, the rest *in-store*. Utilization u is the production rate over the consumption rate: below 1
// the trainers wait for rollouts, above 1 rollouts are dropped. Functions throw std::domain_error with a sentence when
// an argument has no meaning.
#pragma once

namespace millrace {

struct TransferQueueLoad {
    double concurrency = 1.0;       ///< C: rollouts being generated at any time, over all workers
    double batch = 1.0;             ///< B: rollouts per update
    double capacity_batches = 1.0;  ///< q >= 1: queue capacity over B
    double utilization = 1.0;       ///< u
    double group_tail = 1.0;        ///< M_tail = E[longest of a group] / E[length] >= 1
};

/// Versions that pass while a group is generated: C M_tail / (B max(1, u)).
double pre_store_staleness(const TransferQueueLoad& load);

/// Versions that pass in the queue: u for u < 1, (2 q + u - 1) / (2 u) for u > 1.
///
/// Below balance a group waits for a version tick exactly if it arrived during training, a share u of the time. Above,
/// the batch is the oldest B of the newest q B arrivals: mean age (q - 1/2)/u periods, and half a tick. The limits at
/// u = 1 are 1 and q. There the fill of the queue wanders without drift between one batch and q of them, uniformly, so
/// the value is taken as the middle, (1 + q)/2. Within a few per cent of balance expect something in between, too.
double in_store_staleness(const TransferQueueLoad& load);

/// Mean staleness of trained rollouts: pre-store plus in-store.
double mean_staleness(const TransferQueueLoad& load);

/// Variance of staleness for u < 1 (own result): (C/B)^2 Var(longest of a group)/E[L]^2 + 1/6.
///
/// C slots finish B rollouts in a period P = B E[L] / C, so generation takes (longest/E[L]) C/B periods. Versions are
/// whole: the wait for the batch to fill and the phase of the version tick are each spread over one period, 1/12 +
/// 1/12. `relative_tail_variance` is Var(longest of a group) / E[L]^2. Simulations agree within 5 % where the
/// first term exceeds the second; a law too large by a fifth was seen where it is 0.03. u >= 1 has no such law:
/// std::domain_error.
double staleness_variance(const TransferQueueLoad& load, double relative_tail_variance);

// ---- group tailness -----------------------------------------------------------------------------------------------

/// The longest of `size` independent lognormal lengths, in units of the mean length.
struct GroupTail {
    double mean = 1.0;      ///< M_tail
    double variance = 0.0;  ///< Var(longest) / E[L]^2
};

/// For lengths exp(log_sd Z) with Z standard normal; the mean length cancels. By quadrature, to about 1e-12 relative.
/// log_sd in [0, 8].
GroupTail lognormal_group_tail(double log_sd, int size);

/// The log_sd whose M_tail is `group_tail`, in [1, the value at log_sd = 8], for groups of at least two (the tail of a
/// single rollout is always 1).
double lognormal_log_sd(double group_tail, int size);

}  // namespace millrace
