#include "sim/pipeline/rollout_source.h"

#include <algorithm>
#include <stdexcept>

namespace millrace {
namespace {

std::int32_t whole_tokens(double x) {
    if (!(x < 2e9)) {
        throw std::range_error("a rollout of more than 2e9 tokens was drawn: truncate its length law");
    }
    return static_cast<std::int32_t>(x + 0.5);
}

/// GPU-seconds of a rollout under the first-order law.
Distribution work(const WorkersConfig& workers) {
    const auto* first_order = std::get_if<FirstOrderService>(&workers.service);
    return first_order != nullptr ? first_order->gpu_s_per_rollout : Distribution::constant(0.0);
}

}  // namespace

RolloutSource::RolloutSource(const PipelineConfig& config, std::uint64_t seed, std::uint64_t replication)
    : length_(config.workers.length, RandomStream(seed, replication, Purpose::rollout_tokens)),
      gpu_s_(work(config.workers), RandomStream(seed, replication, Purpose::rollout_work)),
      grading_s_(config.reward.value_or(RewardConfig{}).latency_s,
                 RandomStream(seed, replication, Purpose::reward_latency)),
      prompt_length_(config.workers.prompt_length),
      correct_probability_(config.reward.value_or(RewardConfig{}).correct_probability),
      group_size_(config.groups.size),
      first_order_(std::holds_alternative<FirstOrderService>(config.workers.service)),
      draws_prompts_(config.workers.prompt_length.maximum() > 0.0),
      draws_correctness_(keeps_correct_ones(config.store)),
      prompt_stream_(seed, replication, Purpose::prompt_tokens),
      correct_stream_(seed, replication, Purpose::reward_correct) {
    draw();
}

void RolloutSource::advance() {
    ++next_.id;
    draw();
}

void RolloutSource::draw() {
    next_.first_of_group = left_in_group_ == 0;
    if (next_.first_of_group) {
        left_in_group_ = group_size_;
        if (draws_prompts_) {
            Draw prompt(prompt_stream_, next_.id / static_cast<std::uint64_t>(group_size_));
            next_.prompt_tokens = whole_tokens(prompt_length_.sample(prompt));
        }
    }
    --left_in_group_;

    next_.tokens = std::max(1, whole_tokens(length_.at(next_.id)));
    next_.steps = first_order_ ? std::max<std::int64_t>(1, duration_from_seconds(gpu_s_.at(next_.id)).ns)
                               : std::int64_t{next_.tokens};
    next_.grading = duration_from_seconds(grading_s_.at(next_.id));
    if (draws_correctness_) {
        Draw correct(correct_stream_, next_.id);
        next_.correct = correct.uniform() < correct_probability_;
    }
}

}  // namespace millrace
