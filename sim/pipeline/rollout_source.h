// Which rollout starts next, and what it will be like: the timing-only stand-in for a policy and its tasks.
//
// Rollouts start in one global sequence; G in a row are a group and share a prompt. Everything about a rollout is drawn
// from its own number, so it is the same rollout whichever worker runs it and whenever.
#pragma once

#include <cstdint>

#include "sim/engine/random.h"
#include "sim/engine/time.h"
#include "sim/pipeline/config.h"

namespace millrace {

struct RolloutPlan {
    std::uint64_t id = 0;
    std::int32_t prompt_tokens = 0;
    std::int32_t tokens = 0;  ///< of the response, at least 1
    std::int64_t steps = 0;   ///< of its worker (step_timing.h), at least 1
    bool correct = false;
    bool first_of_group = false;
};

class RolloutSource {
   public:
    RolloutSource(const PipelineConfig& config, std::uint64_t seed, std::uint64_t replication);

    /// The next rollout to start, drawn ahead: a worker may have to look at its length and decline.
    const RolloutPlan& next() const { return next_; }
    /// The next rollout has started.
    void advance();

   private:
    void draw();

    Distribution length_;
    Distribution prompt_length_;
    Distribution gpu_s_;
    double correct_probability_;
    std::int64_t group_size_;
    bool first_order_;
    bool draws_prompts_;
    bool draws_correctness_;  ///< something in the pipeline asks for it

    RandomStream token_stream_;
    RandomStream prompt_stream_;
    RandomStream work_stream_;
    RandomStream correct_stream_;

    std::int64_t left_in_group_ = 0;
    RolloutPlan next_;
};

}  // namespace millrace
