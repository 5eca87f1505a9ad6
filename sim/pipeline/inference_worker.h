// An inference worker: one GPU that generates up to `slots` rollouts at once by continuous batching.
//
// All running sequences advance together in steps; a sequence joins or leaves only between two steps. The worker knows
// the step at which each sequence ends and computes the time of the next change in closed form, so it sleeps from one
// change of the batch to the next.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/key_tournament.h"
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
              std::int64_t steps) {
        assert(!paused() && has_free_slot() && has_memory(prompt_tokens + response_tokens) && steps >= 1);
        free_memory_ -= prompt_tokens + response_tokens;
        const std::uint32_t slot = free_slots_.back();
        free_slots_.pop_back();
        slots_[slot] = {rollout, prompt_tokens, response_tokens, steps, 0};
        if (epoch_.sequences == 0) {
            epoch_start_ = now;
            epoch_ = {};
        }
        if (now == epoch_start_) {
            admit(slot);
        } else {
            wait_for_boundary(now, slot);
        }
    }

    /// When the batch changes next; none while the worker is empty or paused.
    std::optional<Time> next_change() const {
        if (paused() || occupied() == 0) {
            return std::nullopt;
        }
        return epoch_start_ + epoch_.elapsed(law_, steps_to_next_change());
    }

    /// The batch changes at `now`, which is next_change(): appends the sequences that ended to `finished`, in the order
    /// in which they had joined, and lets the waiting ones in.
    void change_batch(Time now, std::vector<RolloutIndex>& finished);

    /// Everything stands still, within a step if need be, until resume().
    void pause(Time now);
    void resume(Time now);
    bool paused() const { return paused_at_.has_value(); }

    /// A rollout on the worker, and which share of its response is there.
    struct Progress {
        RolloutIndex rollout = 0;
        double written = 0.0;  ///< in [0, 1)
    };
    /// Of every rollout here that is not complete at `now`, in an order that depends on the history of the simulation
    /// only. One whose last step ends at this very instant is complete, although the batch may not have changed yet.
    std::vector<Progress> progress(Time now) const;

   private:
    struct Sequence {
        RolloutIndex rollout = 0;
        std::int64_t prompt_tokens = 0;
        std::int64_t response_tokens = 0;
        std::int64_t steps = 0;
        std::int64_t last_step = 0;  ///< the worker's step at which it ends, once it is admitted
    };

    void admit(std::uint32_t slot) {
        Sequence& sequence = slots_[slot];
        sequence.last_step = steps_done_ + sequence.steps;
        ++epoch_.sequences;
        if (counts_context_) {
            epoch_.context_tokens += sequence.prompt_tokens;
        }
        epoch_.prefill_tokens += sequence.prompt_tokens;
        ends_.put(slot, KeyTournament::Key{static_cast<std::uint64_t>(sequence.last_step)} << 64 |
                            (admitted_++ << slot_bits | slot));
    }
    void wait_for_boundary(Time now, std::uint32_t slot);
    std::int64_t next_end() const { return static_cast<std::int64_t>(ends_.top() >> 64); }
    std::int64_t steps_to_next_change() const {
        // The boundary at which waiting sequences join is the very next one, so nobody ends before it.
        return joining_.empty() ? next_end() - steps_done_ : join_after_steps_;
    }

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
    // Of running sequences, by slot: the step at which it ends, then the order of joining, then the slot.
    static constexpr int slot_bits = 24;
    static constexpr std::uint64_t slot_mask = (std::uint64_t{1} << slot_bits) - 1;
    KeyTournament ends_;
    std::vector<std::uint32_t> joining_;  ///< slots that wait for the boundary join_after_steps_ of this epoch
    std::int64_t join_after_steps_ = 0;
};

}  // namespace millrace
