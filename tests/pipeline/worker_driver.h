// Drives one InferenceWorker with sequences that arrive at given times and queue first come first served.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "sim/pipeline/inference_worker.h"
#include "tests/pipeline/token_reference.h"

namespace millrace_test {

inline std::vector<TokenSequence> run_worker(const millrace::StepTiming& timing, std::int64_t slots,
                                             std::int64_t kv_cap, std::vector<TokenSequence> sequences) {
    using millrace::Time;
    millrace::InferenceWorker worker(timing, slots, kv_cap);
    std::deque<std::size_t> queue;
    std::vector<millrace::RolloutIndex> finished;
    std::size_t arrived = 0;
    std::size_t ended = 0;
    while (ended < sequences.size()) {
        const auto change = worker.next_change();
        const std::int64_t next_arrival =
            arrived < sequences.size() ? sequences[arrived].arrives_ns : std::numeric_limits<std::int64_t>::max();
        std::int64_t now = next_arrival;
        if (change && change->ns <= next_arrival) {
            now = change->ns;
            finished.clear();
            worker.change_batch({now}, finished);
            for (const millrace::RolloutIndex index : finished) {
                sequences[index].ended_ns = now;
                ++ended;
            }
        }
        while (arrived < sequences.size() && sequences[arrived].arrives_ns <= now) {
            queue.push_back(arrived++);
        }
        while (!queue.empty() && worker.has_free_slot()) {
            const TokenSequence& s = sequences[queue.front()];
            if (!worker.has_memory(s.prompt_tokens + s.response_tokens)) {
                break;
            }
            worker.join({now}, static_cast<millrace::RolloutIndex>(queue.front()), s.prompt_tokens, s.response_tokens);
            queue.pop_front();
        }
    }
    return sequences;
}

}  // namespace millrace_test
