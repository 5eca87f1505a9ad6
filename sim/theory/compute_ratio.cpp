#include "sim/theory/compute_ratio.h"

#include "sim/theory/arguments.h"

namespace millrace {

double compute_ratio(double workers, double trainers, double mu) {
    return update_compute_with_buffer(workers, trainers) / update_compute_without_buffer(mu);
}

double update_compute_with_buffer(double workers, double trainers) {
    require_not_negative(workers, "number of inference workers");
    require_positive(trainers, "number of trainers");
    return 1.0 + workers / trainers;
}

double update_compute_without_buffer(double mu) {
    require_positive(mu, "imbalance mu");
    return 1.0 + mu;
}

double mean_replay_ratio_async(double mu, double workers, double trainers) {
    require_positive(mu, "imbalance mu");
    require_positive(workers, "number of inference workers");
    require_positive(trainers, "number of trainers");
    return mu * trainers / workers;
}

double mean_replay_ratio_sync(double batch, double fresh_per_step) {
    require_positive(batch, "batch");
    require_positive(fresh_per_step, "number of fresh rollouts per step");
    return batch / fresh_per_step;
}

double effective_mu(double samples_trained, double unique_rollouts, double workers, double trainers) {
    require_positive(samples_trained, "number of samples trained on");
    require_positive(unique_rollouts, "number of unique rollouts");
    return effective_mu_of_replay_ratio(samples_trained / unique_rollouts, workers, trainers);
}

double effective_mu_of_replay_ratio(double mean_replay_ratio, double workers, double trainers) {
    require_positive(mean_replay_ratio, "mean replay ratio");
    require_positive(workers, "number of inference workers");
    require_positive(trainers, "number of trainers");
    return mean_replay_ratio * workers / trainers;
}

double first_order_imbalance(double batch, double gpu_s_per_rollout, double gpu_s_per_update) {
    require_positive(batch, "batch");
    require_positive(gpu_s_per_rollout, "compute per rollout");
    require_positive(gpu_s_per_update, "compute per update");
    return batch * gpu_s_per_rollout / gpu_s_per_update;
}

TokenMoments independent_tokens(double mean_prompt, double mean_response, double mean_response_squared) {
    return {.prompt = mean_prompt,
            .response = mean_response,
            .response_squared = mean_response_squared,
            .prompt_times_response = mean_prompt * mean_response};
}

double mean_context_tokens(const TokenMoments& tokens) {
    require_not_negative(tokens.prompt, "mean prompt length");
    require_not_negative(tokens.prompt_times_response, "mean product of prompt and response length");
    if (!(tokens.response >= 1.0) || !std::isfinite(tokens.response)) {
        throw std::domain_error("The mean response length must be finite and at least one token.");
    }
    // L >= 1 makes E[p L] >= E[p]: a smaller product was most likely forgotten.
    if (tokens.prompt_times_response < tokens.prompt * (1.0 - 1e-9)) {
        throw std::domain_error(
            "The mean product of prompt and response length must be at least the mean prompt length, for a response "
            "has at least one token.");
    }
    // Jensen, with room for rounding: a second moment below the square of the mean is a mistake of the caller.
    if (!(tokens.response_squared >= tokens.response * tokens.response * (1.0 - 1e-9)) ||
        !std::isfinite(tokens.response_squared)) {
        throw std::domain_error(
            "The second moment of the response length must be finite and at least the square of its mean.");
    }
    return (tokens.prompt_times_response + 0.5 * (tokens.response_squared - tokens.response)) / tokens.response;
}

double full_slots_gpu_s_per_rollout(const StepLaw& law, const TokenMoments& tokens, double sequences) {
    require_not_negative(law.base_s, "base time of a decode step");
    require_not_negative(law.per_sequence_s, "time per sequence of a decode step");
    require_not_negative(law.per_context_token_s, "time per context token of a decode step");
    require_not_negative(law.prefill_per_token_s, "prefill time per prompt token");
    require_positive(sequences, "number of running sequences");
    const double step_s =
        law.base_s + law.per_sequence_s * sequences + law.per_context_token_s * sequences * mean_context_tokens(tokens);
    return tokens.response * step_s / sequences + law.prefill_per_token_s * tokens.prompt;
}

double full_slots_imbalance(const StepLaw& law, const TokenMoments& tokens, double sequences, double batch,
                            double gpu_s_per_update) {
    return first_order_imbalance(batch, full_slots_gpu_s_per_rollout(law, tokens, sequences), gpu_s_per_update);
}

}  // namespace millrace
