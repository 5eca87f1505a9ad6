// First-order arithmetic of a pipeline: what an update costs with and without a buffer, how often a rollout is used,
// and the imbalance mu that both follow from (Arnal et al. 2026, definitions of mu, gamma and replay ratio).
//
// W and T are counts of GPUs and may be fractional here: the formulas only see their ratio. C is the trainer compute of
// one update in GPU-seconds. Every function throws std::domain_error with a sentence when an argument has no meaning.
#pragma once

namespace millrace {

/// gamma = (1 + W/T) / (1 + mu): compute per update with a buffer over compute per update of a balanced pipeline
/// without one. Below 1 the buffer saves compute.
double compute_ratio(double workers, double trainers, double mu);

/// Compute per update in units of C when a buffer lets both roles run without waiting: 1 + W/T.
double update_compute_with_buffer(double workers, double trainers);

/// Compute per update in units of C of a pipeline that uses each rollout once and wastes none: 1 + mu.
double update_compute_without_buffer(double mu);

/// Mean uses per rollout of an asynchronous pipeline with a buffer: mu T / W.
double mean_replay_ratio_async(double mu, double workers, double trainers);

/// Mean uses per rollout of the synchronous model: B / R (batch over fresh rollouts per step).
double mean_replay_ratio_sync(double batch, double fresh_per_step);

/// mu as measured on a buffered run: (K_training / T) / (K_inference / W), with K_training = updates x B samples
/// trained on and K_inference = unique rollouts generated.
double effective_mu(double samples_trained, double unique_rollouts, double workers, double trainers);

/// The same from the measured mean replay ratio K_training / K_inference.
double effective_mu_of_replay_ratio(double mean_replay_ratio, double workers, double trainers);

/// mu = B g / C of a pipeline whose rollouts each cost g GPU-seconds whatever runs beside them.
double first_order_imbalance(double batch, double gpu_s_per_rollout, double gpu_s_per_update);

/// Step law of continuous batching: a decode step of n sequences holding K context tokens takes
/// base_s + per_sequence_s n + per_context_token_s K seconds; a joining sequence adds prefill_per_token_s for each of
/// its prompt tokens.
struct StepLaw {
    double base_s = 0.0;
    double per_sequence_s = 0.0;
    double per_context_token_s = 0.0;
    double prefill_per_token_s = 0.0;
};

/// Moments of the prompt length p and the response length L >= 1, in tokens.
struct TokenMoments {
    double prompt = 0.0;                 ///< E[p]
    double response = 1.0;               ///< E[L]
    double response_squared = 1.0;       ///< E[L^2]
    double prompt_times_response = 0.0;  ///< E[p L]; E[p] E[L] when they are independent
};

/// TokenMoments of independent prompt and response lengths.
TokenMoments independent_tokens(double mean_prompt, double mean_response, double mean_response_squared);

/// h: context tokens that a running sequence holds, averaged over decode steps.
///
/// In step j = 0 .. L-1 of its life a sequence holds p + j tokens: p L + L (L - 1)/2 token-steps over L steps. The
/// ratio of the two totals over many rollouts is
///     h = E[p L + L (L - 1)/2] / E[L].
/// Long responses hold slots longer: for independent p and L, h = E[p] + (E[L] - 1)/2 + Var(L) / (2 E[L]).
double mean_context_tokens(const TokenMoments& tokens);

/// GPU-seconds of one rollout on a worker that runs n = `sequences` at a time (own derivation):
///     E[L] (a + b n + c n h) / n + prefill E[p].
///
/// The step time is affine in n and in the context tokens, so the long-run busy time per rollout depends on their means
/// over decode steps only, and the expression is exact when n is that mean and every rollout completes. The
/// approximation is in taking n as the number of slots, always full, and busy time for all the time: a pipeline in
/// which workers starve, pause for weights, wait for admission, abort rollouts or hit a KV cap below the slots is
/// dearer.
double full_slots_gpu_s_per_rollout(const StepLaw& law, const TokenMoments& tokens, double sequences);

/// mu = B x full_slots_gpu_s_per_rollout / C.
double full_slots_imbalance(const StepLaw& law, const TokenMoments& tokens, double sequences, double batch,
                            double gpu_s_per_update);

}  // namespace millrace
