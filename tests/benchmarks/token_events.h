// A worker simulated token by token on the engine's event queue, as a discrete-event simulator without the step law's
// closed form would do it: one event per decode step, or one per token of each sequence.
//
// For a workload that is all there at time 0 and slots as the only limit.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/engine/event_queue.h"
#include "tests/pipeline/token_reference.h"

namespace millrace_test {

enum class TokenEvents { per_step, per_token };

template <TokenEvents events>
class TokenEventWorker {
   public:
    TokenEventWorker(const TokenLaw& law, std::int64_t slots, std::vector<TokenSequence> sequences)
        : law_(law), slots_(static_cast<std::size_t>(slots)), sequences_(std::move(sequences)) {
        running_.reserve(slots_);
        queue_.reserve(slots_ + 1);
    }

    /// The sequences with ended_ns.
    std::vector<TokenSequence> run() {
        begin_step();
        millrace::Event event;
        while (queue_.pop(event)) {
            if constexpr (events == TokenEvents::per_token) {
                take_token(event.entity);
                if (--tokens_due_ > 0) {
                    continue;
                }
            } else {
                for (const std::uint32_t s : running_) {
                    take_token(s);
                }
            }
            end_step();
            begin_step();
        }
        return std::move(sequences_);
    }

   private:
    void take_token(std::uint32_t s) {
        TokenSequence& sequence = sequences_[s];
        ++context_tokens_;
        if (++sequence.generated == sequence.response_tokens) {
            sequence.ended_ns = queue_.now().ns;
            some_ended_ = true;
        }
    }

    void end_step() {
        if (some_ended_) {
            std::erase_if(running_, [&](std::uint32_t s) {
                const TokenSequence& sequence = sequences_[s];
                const bool ended = sequence.ended_ns >= 0;
                context_tokens_ -= ended ? sequence.prompt_tokens + sequence.response_tokens : 0;
                return ended;
            });
            some_ended_ = false;
            change_ns_ = queue_.now().ns;
            since_change_ = 0;
        }
    }

    void begin_step() {
        double prefill = 0.0;
        for (; running_.size() < slots_ && next_ < sequences_.size(); ++next_) {
            running_.push_back(next_);
            context_tokens_ += sequences_[next_].prompt_tokens;
            prefill += law_.prefill_per_token_ns * static_cast<double>(sequences_[next_].prompt_tokens);
        }
        if (running_.empty()) {
            return;
        }
        // As run_token_by_token() has it: the exact sum of the steps since the last change, rounded.
        since_change_ += law_.base_ns + law_.per_sequence_ns * static_cast<double>(running_.size()) +
                         law_.per_context_token_ns * static_cast<double>(context_tokens_) + prefill;
        const millrace::Time ends{change_ns_ + std::llrint(since_change_)};
        if constexpr (events == TokenEvents::per_token) {
            tokens_due_ = running_.size();
            for (const std::uint32_t s : running_) {
                queue_.schedule(ends, {0, s, 0});
            }
        } else {
            queue_.schedule(ends, {0, 0, 0});
        }
    }

    TokenLaw law_;
    std::size_t slots_;
    std::vector<TokenSequence> sequences_;
    millrace::EventQueue queue_;
    std::vector<std::uint32_t> running_;
    std::uint32_t next_ = 0;           ///< sequence to start
    std::int64_t context_tokens_ = 0;  ///< of the running ones
    std::size_t tokens_due_ = 0;       ///< in this step
    bool some_ended_ = false;
    std::int64_t change_ns_ = 0;
    long double since_change_ = 0;
};

}  // namespace millrace_test
