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
    /// the response. Throws std::overflow_error when it has more than 2^64 / slots of them.
    void join(Time now, RolloutIndex rollout, std::int32_t prompt_tokens, std::int32_t response_tokens,
              std::int64_t steps) {
        assert(!paused() && has_free_slot() && steps >= 1);
        const std::uint32_t slot = free_slots_.back();
        free_slots_.pop_back();
        Sequence& sequence = slots_[slot];
        sequence.rollout = rollout;
        sequence.prompt_tokens = prompt_tokens;
        sequence.response_tokens = response_tokens;
        sequence.steps = steps;
        assert(has_memory(sequence.tokens()));
        free_memory_ -= sequence.tokens();
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

    /// When the batch changes next; `end_of_time` while the worker is empty or paused.
    Time next_change() const {
        if (paused() || occupied() == 0) {
            return end_of_time;
        }
        return epoch_start_ + epoch_.elapsed(law_, steps_to_next_change());
    }

    /// The rollout that ends first of those that run, of which there must be one.
    RolloutIndex next_to_end() const { return slots_[next_slot()].rollout; }

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
    /// Of a running sequence: the step at which it ends, and below that slot_bits_ of its slot.
    using EndKey = std::uint64_t;

    struct alignas(32) Sequence {  // never across two cache lines
        RolloutIndex rollout = 0;
        std::int32_t prompt_tokens = 0;
        std::int32_t response_tokens = 0;
        std::int64_t steps = 0;
        std::uint64_t admission = 0;  ///< how many were admitted before it, once it is

        std::int64_t tokens() const { return std::int64_t{prompt_tokens} + response_tokens; }
    };

    void admit(std::uint32_t slot) {
        Sequence& sequence = slots_[slot];
        if (sequence.steps > most_steps_ - steps_done_) [[unlikely]] {
            count_steps_anew(sequence.steps);
        }
        sequence.admission = admitted_++;
        ++epoch_.sequences;
        if (counts_context_) {
            epoch_.context_tokens += sequence.prompt_tokens;
        }
        epoch_.prefill_tokens += sequence.prompt_tokens;
        ends_.put(slot, static_cast<EndKey>(steps_done_ + sequence.steps) << slot_bits_ | slot);
    }
    void wait_for_boundary(Time now, std::uint32_t slot);
    void count_steps_anew(std::int64_t joining);
    std::int64_t end(std::size_t slot) const { return static_cast<std::int64_t>(ends_.key(slot) >> slot_bits_); }
    std::int64_t next_end() const { return static_cast<std::int64_t>(ends_.top() >> slot_bits_); }
    std::uint32_t next_slot() const {
        return static_cast<std::uint32_t>(ends_.top() & ((EndKey{1} << slot_bits_) - 1));
    }
    std::int64_t steps_to_next_change() const {
        // The boundary at which waiting sequences join is the very next one, so nobody ends before it.
        return joining_.empty() ? next_end() - steps_done_ : join_after_steps_;
    }

    StepTiming law_;
    bool counts_context_;       ///< only where it costs time: under the first-order law steps are not tokens
    std::int64_t free_memory_;  ///< tokens that nobody has reserved; effectively unlimited without a cap

    Time epoch_start_;
    StepEpoch epoch_;
    std::int64_t steps_done_ = 0;  ///< at epoch_start_, of those that ends_ counts
    std::uint64_t admitted_ = 0;
    std::optional<Time> paused_at_;

    std::vector<Sequence> slots_;
    std::vector<std::uint32_t> free_slots_;
    int slot_bits_;
    std::int64_t most_steps_;             ///< that an EndKey can hold; one more is left to KeyTournament's `never`
    KeyTournament<EndKey> ends_;          ///< of running sequences, by slot
    std::vector<std::uint32_t> ending_;   ///< scratch: slots of the sequences that end in the same step
    std::vector<std::uint32_t> joining_;  ///< slots that wait for the boundary join_after_steps_ of this epoch
    std::int64_t join_after_steps_ = 0;
};

}  // namespace millrace
