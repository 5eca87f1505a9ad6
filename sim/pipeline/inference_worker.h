// An inference worker: one GPU that generates up to `slots` rollouts at once by continuous batching.
//
// All running sequences advance together in steps; a sequence joins or leaves only between two steps. The worker knows
// the step at which each sequence ends and computes the time of the next change in closed form, so it sleeps from one
// change of the batch to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/key_heap.h"
#include "sim/engine/time.h"
#include "sim/pipeline/rollout.h"
#include "sim/pipeline/step_timing.h"

namespace millrace {

class InferenceWorker {
   public:
    /// kv_cap_tokens: the sum over running sequences of prompt plus full response never exceeds it.
    InferenceWorker(const StepTiming& law, std::int64_t slots, std::optional<std::int64_t> kv_cap_tokens);

    /// Sequences that run or wait for the next step boundary.
    std::int64_t occupied() const { return static_cast<std::int64_t>(slots_.size() - free_slots_.size()); }
    bool has_free_slot() const { return !free_slots_.empty(); }
    /// Whether the key-value memory has room for a sequence of this many tokens, prompt and response.
    bool has_memory(std::int64_t tokens) const { return tokens <= free_memory_; }

    /// A sequence of `steps` >= 1 steps joins: now if the worker stands between two steps, else at the next boundary.
    /// Not while paused. It reserves memory for its prompt and response; under the step law its steps are the tokens of
    /// the response.
    void join(Time now, RolloutIndex rollout, std::int64_t prompt_tokens, std::int64_t response_tokens,
              std::int64_t steps);

    /// When the batch changes next; none while the worker is empty or paused.
    std::optional<Time> next_change();

    /// The batch changes at `now`, which is next_change(): appends the sequences that ended to `finished`, in the order
    /// in which they had joined, and lets the waiting ones in.
    void change_batch(Time now, std::vector<RolloutIndex>& finished);

    /// Everything stands still, within a step if need be, until resume().
    void pause(Time now);
    void resume(Time now);
    bool paused() const { return paused_at_.has_value(); }

   private:
    struct Sequence {
        RolloutIndex rollout = 0;
        std::int64_t prompt_tokens = 0;
        std::int64_t response_tokens = 0;
        std::int64_t steps = 0;
    };

    void admit(std::size_t slot);
    std::int64_t steps_to_next_change();
    std::int64_t next_end();

    StepTiming law_;
    bool counts_context_;       ///< only where it costs time: under the first-order law steps are not tokens
    std::int64_t free_memory_;  ///< tokens that nobody has reserved; effectively unlimited without a cap

    Time epoch_start_;
    StepEpoch epoch_;
    std::int64_t steps_done_ = 0;  ///< since time 0, at epoch_start_
    std::uint64_t admitted_ = 0;
    std::optional<Time> paused_at_;

    std::vector<Sequence> slots_;
    std::vector<std::uint32_t> free_slots_;
    KeyHeap ends_;                        ///< of running sequences: step at which it ends, order of joining, slot
    std::vector<std::uint32_t> joining_;  ///< slots that wait for the boundary join_after_steps_ of this epoch
    std::int64_t join_after_steps_ = 0;
};

}  // namespace millrace
