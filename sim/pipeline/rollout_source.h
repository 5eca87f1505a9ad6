// Which rollout starts next, and what it will be like: the timing-only stand-in for a policy and its tasks.
//
// Rollouts start in one global sequence; G in a row are a group and share a prompt. Everything about a rollout is drawn
// from its own number, so it is the same rollout whichever worker runs it and whenever.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "sim/engine/random.h"
#include "sim/engine/time.h"
#include "sim/pipeline/config.h"

namespace millrace {

struct RolloutPlan {
    std::uint64_t id = 0;
    std::int32_t prompt_tokens = 0;
    std::int32_t tokens = 0;  ///< of the response, at least 1
    std::int64_t steps = 0;   ///< of its worker (step_timing.h), at least 1
    Duration grading;         ///< how long a server of the reward stage works on it
    bool correct = false;
    bool first_of_group = false;
};

/// The samples of one law by index, to be asked for in order: drawn a block at a time, which is faster.
class DrawAhead {
   public:
    DrawAhead(Distribution law, RandomStream stream) : law_(std::move(law)), stream_(stream) {}

    double at(std::uint64_t index) {
        const std::size_t place = index % block_.size();
        if (place == 0) {
            law_.sample(stream_, index, block_);
        }
        return block_[place];
    }

   private:
    Distribution law_;
    RandomStream stream_;
    std::array<double, 64> block_{};
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

    DrawAhead length_;
    DrawAhead gpu_s_;
    DrawAhead grading_s_;
    Distribution prompt_length_;
    double correct_probability_;
    std::int64_t group_size_;
    bool first_order_;
    bool draws_prompts_;
    bool draws_correctness_;  ///< something in the pipeline asks for it
    RandomStream prompt_stream_;
    RandomStream correct_stream_;

    std::int64_t left_in_group_ = 0;
    RolloutPlan next_;
};

}  // namespace millrace
