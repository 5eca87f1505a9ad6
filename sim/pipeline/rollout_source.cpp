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

bool keeps_correct_ones(const StoreConfig& store) {
    const auto* buffer = std::get_if<ReplayBufferConfig>(&store);
    return buffer != nullptr && buffer->positive_bias_delta > 0.0;
}

}  // namespace

RolloutSource::RolloutSource(const PipelineConfig& config, std::uint64_t seed, std::uint64_t replication)
    : length_(config.workers.length),
      prompt_length_(config.workers.prompt_length),
      gpu_s_(Distribution::constant(0.0)),
      correct_probability_(config.reward.value_or(RewardConfig{}).correct_probability),
      group_size_(config.groups.size),
      first_order_(std::holds_alternative<FirstOrderService>(config.workers.service)),
      draws_prompts_(config.workers.prompt_length.maximum() > 0.0),
      draws_correctness_(keeps_correct_ones(config.store)),
      token_stream_(seed, replication, Purpose::rollout_tokens),
      prompt_stream_(seed, replication, Purpose::prompt_tokens),
      work_stream_(seed, replication, Purpose::rollout_work),
      correct_stream_(seed, replication, Purpose::reward_correct) {
    if (first_order_) {
        gpu_s_ = std::get<FirstOrderService>(config.workers.service).gpu_s_per_rollout;
    }
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

    Draw tokens(token_stream_, next_.id);
    next_.tokens = std::max(1, whole_tokens(length_.sample(tokens)));
    if (first_order_) {
        Draw work(work_stream_, next_.id);
        next_.steps = std::max<std::int64_t>(1, duration_from_seconds(gpu_s_.sample(work)).ns);
    } else {
        next_.steps = next_.tokens;
    }
    if (draws_correctness_) {
        Draw correct(correct_stream_, next_.id);
        next_.correct = correct.uniform() < correct_probability_;
    }
}

}  // namespace millrace
