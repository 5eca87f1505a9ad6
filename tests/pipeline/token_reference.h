// A worker simulated token by token: the plain loop that the step law's closed form must equal.
//
// Every step is gone through one by one; its duration follows from the sequences that run in it. Written for clarity
// and independent of sim/pipeline: it shares only the coefficients' meaning.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

namespace millrace_test {

struct TokenSequence {
    std::int64_t id = 0;
    std::int64_t arrives_ns = 0;
    std::int32_t prompt_tokens = 0;
    std::int32_t response_tokens = 0;
    std::int64_t generated = 0;
    std::int64_t ended_ns = -1;
};

struct TokenLaw {
    double base_ns = 0.0;
    double per_sequence_ns = 0.0;
    double per_context_token_ns = 0.0;
    double prefill_per_token_ns = 0.0;
};

/// The worker stands still in [from_ns, to_ns), within a step if need be.
struct TokenPause {
    std::int64_t from_ns = 0;
    std::int64_t to_ns = 0;
};

/// Runs all sequences (sorted by arrival) through one worker, first come first served, and returns them with ended_ns.
/// A boundary lies at the exact sum of the steps since the batch last changed, rounded to nanoseconds; whoever has come
/// by then joins. Pauses are sorted and apart; one that begins at a boundary begins after it.
inline std::vector<TokenSequence> run_token_by_token(const TokenLaw& law, std::int64_t slots, std::int64_t kv_cap,
                                                     std::vector<TokenSequence> sequences,
                                                     const std::vector<TokenPause>& pauses = {}) {
    std::vector<TokenSequence*> running;
    std::deque<TokenSequence*> queue;
    std::size_t arrived = 0;
    std::size_t ended = 0;
    std::size_t paused = 0;        // pauses that are over
    std::int64_t change_ns = 0;    // when the batch last changed, moved on by the pauses since
    long double since_change = 0;  // exact time of the steps since then, ns

    const auto reserved = [&] {
        std::int64_t tokens = 0;
        for (const TokenSequence* s : running) {
            tokens += s->prompt_tokens + s->response_tokens;
        }
        return tokens;
    };
    const auto clock = [&] { return change_ns + std::llrint(since_change); };
    double prefill = 0.0;
    // Between two steps: whoever has come by now may join.
    const auto let_in = [&] {
        const std::int64_t now = clock();
        while (arrived < sequences.size() && sequences[arrived].arrives_ns <= now) {
            queue.push_back(&sequences[arrived++]);
        }
        while (!queue.empty() && static_cast<std::int64_t>(running.size()) < slots &&
               reserved() + queue.front()->prompt_tokens + queue.front()->response_tokens <= kv_cap) {
            change_ns = now;
            since_change = 0;
            prefill += law.prefill_per_token_ns * static_cast<double>(queue.front()->prompt_tokens);
            running.push_back(queue.front());
            queue.pop_front();
        }
    };

    while (ended < sequences.size()) {
        if (running.empty() && queue.empty() && sequences[arrived].arrives_ns > clock()) {
            change_ns = sequences[arrived].arrives_ns;
            since_change = 0;
            for (; paused < pauses.size() && pauses[paused].from_ns < change_ns; ++paused) {
                change_ns = std::max(change_ns, pauses[paused].to_ns);
            }
        }
        let_in();
        for (; paused < pauses.size() && pauses[paused].from_ns == clock(); ++paused) {
            change_ns += pauses[paused].to_ns - pauses[paused].from_ns;
            let_in();
        }
        // One step: its time depends on the sequences and on every token they hold.
        std::int64_t context = 0;
        for (const TokenSequence* s : running) {
            context += s->prompt_tokens + s->generated;
        }
        since_change += law.base_ns + law.per_sequence_ns * static_cast<double>(running.size()) +
                        law.per_context_token_ns * static_cast<double>(context) + prefill;
        prefill = 0.0;
        for (; paused < pauses.size() && pauses[paused].from_ns < clock(); ++paused) {
            change_ns += pauses[paused].to_ns - pauses[paused].from_ns;
        }
        const std::int64_t after = clock();
        const auto gone = std::remove_if(running.begin(), running.end(), [&](TokenSequence* s) {
            if (++s->generated < s->response_tokens) {
                return false;
            }
            s->ended_ns = after;
            ++ended;
            return true;
        });
        if (gone != running.end()) {
            running.erase(gone, running.end());
            change_ns = after;
            since_change = 0;
        }
    }
    return sequences;
}

}  // namespace millrace_test
