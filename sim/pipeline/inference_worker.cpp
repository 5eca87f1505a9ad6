#include "sim/pipeline/inference_worker.h"

#include <cassert>
#include <limits>

namespace millrace {
namespace {

// Keys of the heap: the step at which a sequence ends, then the order of joining, then its slot.
constexpr int slot_bits = 24;
constexpr std::uint64_t slot_mask = (std::uint64_t{1} << slot_bits) - 1;

}  // namespace

InferenceWorker::InferenceWorker(const StepTiming& law, std::int64_t slots, std::optional<std::int64_t> kv_cap_tokens)
    : law_(law),
      counts_context_(law.per_context_token_ns > 0.0),
      free_memory_(kv_cap_tokens.value_or(std::numeric_limits<std::int64_t>::max())),
      slots_(static_cast<std::size_t>(slots)) {
    assert(slots >= 1 && static_cast<std::uint64_t>(slots) <= slot_mask);
    for (auto slot = static_cast<std::uint32_t>(slots); slot-- > 0;) {
        free_slots_.push_back(slot);
    }
    ends_.reserve(slots_.size());
    joining_.reserve(slots_.size());
}

void InferenceWorker::join(Time now, RolloutIndex rollout, std::int64_t prompt_tokens, std::int64_t response_tokens,
                           std::int64_t steps) {
    assert(!paused() && has_free_slot() && has_memory(prompt_tokens + response_tokens) && steps >= 1);
    free_memory_ -= prompt_tokens + response_tokens;
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = {rollout, prompt_tokens, response_tokens, steps};

    if (epoch_.sequences == 0) {
        epoch_start_ = now;
        epoch_ = {};
    }
    if (now == epoch_start_) {
        admit(slot);
        return;
    }
    if (joining_.empty()) {
        join_after_steps_ = epoch_.boundary_at_or_after(law_, now - epoch_start_);
    }
    joining_.push_back(slot);
}

void InferenceWorker::admit(std::size_t slot) {
    const Sequence& sequence = slots_[slot];
    ++epoch_.sequences;
    if (counts_context_) {
        epoch_.context_tokens += sequence.prompt_tokens;
    }
    epoch_.prefill_tokens += sequence.prompt_tokens;
    const auto last_step = static_cast<std::uint64_t>(steps_done_ + sequence.steps);
    ends_.push(KeyHeap::Key{last_step} << 64 | (admitted_++ << slot_bits | slot));
}

std::int64_t InferenceWorker::next_end() {
    return static_cast<std::int64_t>(ends_.top() >> 64);
}

std::int64_t InferenceWorker::steps_to_next_change() {
    // The boundary at which waiting sequences join is the very next one, so nobody ends before it.
    return joining_.empty() ? next_end() - steps_done_ : join_after_steps_;
}

std::optional<Time> InferenceWorker::next_change() {
    if (paused() || occupied() == 0) {
        return std::nullopt;
    }
    return epoch_start_ + epoch_.elapsed(law_, steps_to_next_change());
}

void InferenceWorker::change_batch(Time now, std::vector<RolloutIndex>& finished) {
    assert(next_change() == now);
    const std::int64_t steps = steps_to_next_change();
    if (steps > 0) {
        steps_done_ += steps;
        if (counts_context_) {
            epoch_.context_tokens += steps * epoch_.sequences;
        }
        epoch_.prefill_tokens = 0;
        epoch_start_ = now;
    }
    while (epoch_.sequences > 0 && next_end() == steps_done_) {
        const auto slot = static_cast<std::uint32_t>(static_cast<std::uint64_t>(ends_.top()) & slot_mask);
        ends_.pop();
        const Sequence& ended = slots_[slot];
        const std::int64_t tokens = ended.prompt_tokens + ended.response_tokens;
        --epoch_.sequences;
        if (counts_context_) {
            epoch_.context_tokens -= tokens;
        }
        free_memory_ += tokens;
        finished.push_back(ended.rollout);
        free_slots_.push_back(slot);
    }
    for (const std::uint32_t slot : joining_) {
        admit(slot);
    }
    joining_.clear();
}

void InferenceWorker::pause(Time now) {
    assert(!paused());
    paused_at_ = now;
}

void InferenceWorker::resume(Time now) {
    assert(paused());
    epoch_start_ = epoch_start_ + (now - *paused_at_);
    paused_at_.reset();
}

}  // namespace millrace
