#include "model/task_learner.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "model/advantage.h"
#include "model/weights.h"

namespace millrace {

namespace {

/// Whether the ids are groups of `size` one after the other: all rollouts of one prompt, then all of another.
bool are_whole_groups(std::span<const std::uint64_t> ids, std::size_t size) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] / size != ids[i - i % size] / size) {
            return false;
        }
    }
    return ids.size() % size == 0;
}

}  // namespace

template <typename P>
TaskLearner<P>::TaskLearner(Backend<P>& backend, const LearnerSettings& settings, std::span<const std::uint64_t> seeds,
                            std::span<const Real> theta_0)
    : settings_(settings),
      task_(settings.task),
      shape_(shape_of(settings.model, task_)),
      seeds_(seeds.begin(), seeds.end()),
      backend_(backend),
      generator_(backend, shape_, static_cast<int>(task_.prompt_tokens()), static_cast<int>(task_.answer_tokens())),
      trainer_(backend, shape_, static_cast<int>(seeds.size()), generator_.prompt_tokens(),
               generator_.sequence_tokens()),
      theta_0_hash_(content_hash<Real>(theta_0)),
      generated_tokens_(seeds.size(), 0),
      trained_tokens_(seeds.size(), 0) {
    if (seeds.empty()) {
        throw std::invalid_argument("A learner needs at least one seed.");
    }
    trainer_.start(theta_0);
}

template <typename P>
std::shared_ptr<const Weights<P>> TaskLearner<P>::policy_of(std::span<const Real> weights, std::int64_t version) const {
    const auto policy = std::make_shared<Weights<P>>(backend_, shape_, replicas());
    policy->upload(weights);
    policy->set_version(version);
    return policy;
}

template <typename P>
std::vector<TaskRollout> TaskLearner<P>::generate(const Weights<P>& policy, std::span<const std::uint64_t> ids,
                                                  int group_size) {
    const auto replica_count = static_cast<std::size_t>(replicas());
    const auto prompt_length = static_cast<std::size_t>(generator_.prompt_tokens());
    const auto row = static_cast<std::size_t>(generator_.sequence_tokens());
    const auto room = static_cast<std::size_t>(generator_.answer_room());
    // Whole groups share the work on their prompts.
    const std::size_t copies = are_whole_groups(ids, static_cast<std::size_t>(group_size))
                                   ? static_cast<std::size_t>(group_size)
                                   : std::size_t{1};
    const std::size_t prompt_count = ids.size() / copies;

    std::vector<Token> prompts(replica_count * prompt_count * prompt_length);
    std::vector<std::uint64_t> sequence_ids;
    for (std::size_t s = 0; s < replica_count; ++s) {
        for (std::size_t p = 0; p < prompt_count; ++p) {
            task_.make_prompt(Split::train, seeds_[s], ids[p * copies] / static_cast<std::uint64_t>(group_size),
                              std::span(prompts).subspan((s * prompt_count + p) * prompt_length, prompt_length));
        }
        sequence_ids.insert(sequence_ids.end(), ids.begin(), ids.end());
    }
    const GenerationResult<P> generated = generator_.generate(policy, {.prompts = static_cast<int>(prompt_count),
                                                                       .copies = static_cast<int>(copies),
                                                                       .prompt_tokens = prompts,
                                                                       .seeds = seeds_,
                                                                       .sequence_ids = sequence_ids});

    std::vector<TaskRollout> rollouts(ids.size());
    for (std::size_t b = 0; b < ids.size(); ++b) {
        counters_.rollouts = std::max(counters_.rollouts, static_cast<std::int64_t>(ids[b]) + 1);
        TaskRollout& rollout = rollouts[b];
        rollout.policy_version = policy.version();
        rollout.advantage.assign(replica_count, 0.0);
        for (std::size_t s = 0; s < replica_count; ++s) {
            const std::size_t i = s * ids.size() + b;
            const auto tokens = std::span(generated.tokens).subspan(i * row, row);
            const auto log_probability = std::span(generated.log_probability).subspan(i * room, room);
            rollout.tokens.insert(rollout.tokens.end(), tokens.begin(), tokens.end());
            rollout.answer_tokens.push_back(generated.answer_tokens[i]);
            rollout.log_probability.insert(rollout.log_probability.end(), log_probability.begin(),
                                           log_probability.end());
            const bool correct = task_.is_correct(tokens.first(prompt_length), tokens.subspan(prompt_length));
            rollout.reward.push_back(correct ? 1.0 : 0.0);
            generated_tokens_[s] += generated.answer_tokens[i];
        }
    }
    return rollouts;
}

template <typename P>
void TaskLearner<P>::rewrite(const Weights<P>& policy, std::span<const std::uint64_t> ids,
                             std::span<TaskRollout* const> rollouts, int first_token) {
    const auto replica_count = static_cast<std::size_t>(replicas());
    const auto row = static_cast<std::size_t>(generator_.sequence_tokens());
    const auto room = static_cast<std::size_t>(generator_.answer_room());
    const auto kept = static_cast<std::size_t>(first_token);
    const auto prompt_length = static_cast<std::size_t>(generator_.prompt_tokens());
    continuations_.resize(room);
    auto& generator = continuations_.at(kept);
    if (!generator) {
        generator = std::make_unique<Generator<P>>(backend_, shape_, generator_.prompt_tokens() + first_token,
                                                   generator_.answer_room() - first_token);
    }

    // What is there already is the prompt. Answers that have ended are continued too, and what comes out is dropped.
    std::vector<Token> prompts;
    std::vector<std::uint64_t> sequence_ids;
    for (std::size_t s = 0; s < replica_count; ++s) {
        for (const TaskRollout* rollout : rollouts) {
            const auto tokens = std::span(rollout->tokens).subspan(s * row, prompt_length + kept);
            prompts.insert(prompts.end(), tokens.begin(), tokens.end());
        }
        sequence_ids.insert(sequence_ids.end(), ids.begin(), ids.end());
    }
    const GenerationResult<P> generated = generator->generate(policy, {.prompts = static_cast<int>(ids.size()),
                                                                       .copies = 1,
                                                                       .prompt_tokens = prompts,
                                                                       .seeds = seeds_,
                                                                       .sequence_ids = sequence_ids});
    for (std::size_t b = 0; b < ids.size(); ++b) {
        TaskRollout& rollout = *rollouts[b];
        rollout.policy_version = written_by_several;
        for (std::size_t s = 0; s < replica_count; ++s) {
            if (rollout.answer_tokens[s] <= first_token) {
                continue;
            }
            const std::size_t i = s * ids.size() + b;
            const auto tokens = std::span(rollout.tokens).subspan(s * row, row);
            std::ranges::copy(std::span(generated.tokens).subspan(i * row, row), tokens.begin());
            std::ranges::copy(std::span(generated.log_probability).subspan(i * (room - kept), room - kept),
                              rollout.log_probability.begin() + static_cast<std::ptrdiff_t>(s * room + kept));
            const std::int32_t length = first_token + generated.answer_tokens[i];
            generated_tokens_[s] += length - rollout.answer_tokens[s];
            rollout.answer_tokens[s] = length;
            const bool correct = task_.is_correct(tokens.first(prompt_length), tokens.subspan(prompt_length));
            rollout.reward[s] = correct ? 1.0 : 0.0;
        }
    }
}

template <typename P>
std::vector<TaskRollout> TaskLearner<P>::generate_next(const Weights<P>& policy, int groups, int group_size) {
    std::vector<std::uint64_t> ids(static_cast<std::size_t>(groups) * static_cast<std::size_t>(group_size));
    std::iota(ids.begin(), ids.end(), static_cast<std::uint64_t>(counters_.rollouts));
    std::vector<TaskRollout> rollouts = generate(policy, ids, group_size);
    std::vector<TaskRollout*> group(static_cast<std::size_t>(group_size));
    for (std::size_t first = 0; first < rollouts.size(); first += group.size()) {
        for (std::size_t i = 0; i < group.size(); ++i) {
            group[i] = &rollouts[first + i];
        }
        set_advantages(group);
    }
    return rollouts;
}

template <typename P>
void TaskLearner<P>::set_advantages(std::span<TaskRollout* const> group) const {
    std::vector<double> rewards(group.size());
    std::vector<double> advantages(group.size());
    for (std::size_t s = 0; s < seeds_.size(); ++s) {
        std::ranges::transform(group, rewards.begin(), [s](const TaskRollout* rollout) { return rollout->reward[s]; });
        write_advantages(settings_.objective, rewards, advantages);
        for (std::size_t i = 0; i < group.size(); ++i) {
            group[i]->advantage[s] = advantages[i];
        }
    }
}

template <typename P>
std::vector<UpdateStatistics> TaskLearner<P>::update(std::span<const TaskRollout* const> batch) {
    const LearningRateSchedule schedule{.peak = settings_.optimizer.learning_rate,
                                        .warmup_updates = settings_.optimizer.warmup_updates};
    auto seen = trainer_.update(batch, settings_.objective, settings_.optimizer, schedule.at(version() + 1));
    counters_.updates = version();
    for (std::size_t s = 0; s < seen.size(); ++s) {
        trained_tokens_[s] += static_cast<std::int64_t>(seen[s].trained_tokens);
    }
    return seen;
}

template <typename P>
Checkpoint<typename P::Real> TaskLearner<P>::save() const {
    TrainingState<Real> state = trainer_.state();
    return {.shape = shape_,
            .task = settings_.task,
            .theta_0_hash = theta_0_hash_,
            .counters = counters_,
            .replicas = replicas(),
            .generated_tokens = generated_tokens_,
            .trained_tokens = trained_tokens_,
            .weights = std::move(state.weights),
            .first_moment = std::move(state.first_moment),
            .second_moment = std::move(state.second_moment)};
}

template <typename P>
void TaskLearner<P>::restore(const Checkpoint<Real>& checkpoint) {
    if (checkpoint.shape != shape_ || checkpoint.task.kind != settings_.task.kind ||
        checkpoint.task.size != settings_.task.size || checkpoint.replicas != replicas()) {
        throw std::invalid_argument("The checkpoint is of another learner: " + std::to_string(checkpoint.replicas) +
                                    " replicas of " + to_text(checkpoint.shape) + " instead of " +
                                    std::to_string(replicas()) + " of " + to_text(shape_) + ".");
    }
    trainer_.restore(
        {checkpoint.counters.updates, checkpoint.weights, checkpoint.first_moment, checkpoint.second_moment});
    theta_0_hash_ = checkpoint.theta_0_hash;
    counters_ = checkpoint.counters;
    generated_tokens_ = checkpoint.generated_tokens;
    trained_tokens_ = checkpoint.trained_tokens;
    generated_tokens_.resize(seeds_.size(), 0);
    trained_tokens_.resize(seeds_.size(), 0);
}

template class TaskLearner<Float32>;
template class TaskLearner<Float64>;
template class TaskLearner<Mixed>;

}  // namespace millrace
