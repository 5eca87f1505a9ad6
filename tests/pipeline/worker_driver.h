// Drives one InferenceWorker with sequences that arrive at given times and queue first come first served.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/pipeline/inference_worker.h"
#include "tests/pipeline/token_reference.h"

namespace millrace_test {

/// What run_token_by_token() does, with an InferenceWorker.
inline std::vector<TokenSequence> run_worker(const millrace::StepTiming& timing, std::int64_t slots,
                                             std::int64_t kv_cap, std::vector<TokenSequence> sequences,
                                             const std::vector<TokenPause>& pauses = {}) {
    constexpr std::int64_t never = millrace::end_of_time.ns;
    millrace::InferenceWorker worker(timing, slots, kv_cap);
    std::deque<std::size_t> queue;
    std::vector<millrace::RolloutIndex> finished;
    std::size_t arrived = 0;
    std::size_t ended = 0;
    auto pause = pauses.begin();
    while (ended < sequences.size()) {
        const std::int64_t change = worker.next_change().ns;
        const std::int64_t arrival = arrived < sequences.size() ? sequences[arrived].arrives_ns : never;
        const std::int64_t toggle = pause == pauses.end() ? never : worker.paused() ? pause->to_ns : pause->from_ns;
        const std::int64_t now = std::min({change, arrival, toggle});
        if (now == change) {
            finished.clear();
            worker.change_batch({now}, finished);
            for (const millrace::RolloutIndex index : finished) {
                sequences[index].ended_ns = now;
                ++ended;
            }
        }
        if (now == toggle && worker.paused()) {
            worker.resume({now});
            ++pause;
        }
        while (arrived < sequences.size() && sequences[arrived].arrives_ns <= now) {
            queue.push_back(arrived++);
        }
        while (!queue.empty() && !worker.paused() && worker.has_free_slot()) {
            const TokenSequence& s = sequences[queue.front()];
            if (!worker.has_memory(s.prompt_tokens + s.response_tokens)) {
                break;
            }
            worker.join({now}, static_cast<millrace::RolloutIndex>(queue.front()), s.prompt_tokens, s.response_tokens,
                        s.response_tokens);
            queue.pop_front();
        }
        if (pause != pauses.end() && now == pause->from_ns && !worker.paused()) {
            worker.pause({now});
        }
    }
    return sequences;
}

}  // namespace millrace_test
