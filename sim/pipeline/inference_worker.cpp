#include "sim/pipeline/inference_worker.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <stdexcept>
#include <string>

namespace millrace {

InferenceWorker::InferenceWorker(const StepTiming& law, std::int64_t slots, std::optional<std::int64_t> kv_cap_tokens)
    : law_(law),
      counts_context_(law.per_context_token_ns > 0.0),
      free_memory_(kv_cap_tokens.value_or(std::numeric_limits<std::int64_t>::max())),
      slots_(static_cast<std::size_t>(slots)),
      slot_bits_(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(slots - 1)))),
      most_steps_(static_cast<std::int64_t>(std::min<EndKey>((KeyTournament<EndKey>::never >> slot_bits_) - 1,
                                                             std::numeric_limits<std::int64_t>::max()))),
      ends_(slots_.size()) {
    assert(slots >= 1);
    for (auto slot = static_cast<std::uint32_t>(slots); slot-- > 0;) {
        free_slots_.push_back(slot);
    }
    joining_.reserve(slots_.size());
    ending_.reserve(slots_.size());
}

void InferenceWorker::wait_for_boundary(Time now, std::uint32_t slot) {
    if (joining_.empty()) {
        join_after_steps_ = epoch_.boundary_at_or_after(law_, now - epoch_start_);
    }
    joining_.push_back(slot);
}

/// From 0, so that a sequence of `joining` steps can be counted.
void InferenceWorker::count_steps_anew(std::int64_t joining) {
    if (joining > most_steps_) {
        throw std::overflow_error("a rollout takes more steps than a worker of " + std::to_string(slots_.size()) +
                                  " slots can count (" + std::to_string(most_steps_) +
                                  "): make it shorter, or workers.slots smaller");
    }
    ends_.lower_all(static_cast<EndKey>(steps_done_) << slot_bits_);
    steps_done_ = 0;
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
    const auto leave = [&](std::uint32_t slot) {
        const Sequence& sequence = slots_[slot];
        --epoch_.sequences;
        if (counts_context_) {
            epoch_.context_tokens -= sequence.tokens();
        }
        free_memory_ += sequence.tokens();
        finished.push_back(sequence.rollout);
        free_slots_.push_back(slot);
    };
    if (next_end() == steps_done_) {
        const std::uint32_t first = next_slot();
        ends_.remove_top(first);
        if (next_end() != steps_done_) [[likely]] {
            leave(first);  // not by way of ending_, which takes 4 % more time of a whole run
        } else {
            ending_.assign(1, first);
            do {
                ending_.push_back(next_slot());
                ends_.remove_top(ending_.back());
            } while (next_end() == steps_done_);
            std::sort(ending_.begin(), ending_.end(),
                      [this](std::uint32_t a, std::uint32_t b) { return slots_[a].admission < slots_[b].admission; });
            std::for_each(ending_.begin(), ending_.end(), leave);
        }
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

std::vector<InferenceWorker::Progress> InferenceWorker::progress(Time now) const {
    const Time at = paused_at_.value_or(now);
    std::int64_t steps_done = steps_done_;
    if (epoch_.sequences > 0 && at > epoch_start_) {
        const std::int64_t begun = epoch_.boundary_at_or_after(law_, at - epoch_start_);
        // A step under way has not written its tokens yet.
        steps_done += epoch_start_ + epoch_.elapsed(law_, begun) > at ? begun - 1 : begun;
    }
    std::vector<bool> is_free(slots_.size());
    for (const std::uint32_t slot : free_slots_) {
        is_free[slot] = true;
    }
    std::vector<bool> is_waiting(slots_.size());
    for (const std::uint32_t slot : joining_) {
        is_waiting[slot] = true;
    }
    std::vector<Progress> progress;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (is_free[slot]) {
            continue;
        }
        const Sequence& sequence = slots_[slot];
        const std::int64_t left = is_waiting[slot] ? sequence.steps : end(slot) - steps_done;
        if (left > 0) {
            progress.push_back(
                {sequence.rollout, static_cast<double>(sequence.steps - left) / static_cast<double>(sequence.steps)});
        }
    }
    return progress;
}

}  // namespace millrace
