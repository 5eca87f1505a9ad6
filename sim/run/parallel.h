// A loop over threads whose result does not depend on how many there are.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace millrace {

/// Calls `body(i)` for i = 0 .. count - 1, each on whichever of `jobs` threads is free. Body i may write only what
/// belongs to i. If some throw, the exception of the smallest i is thrown here when all are done.
template <typename Body>
void parallel_for(std::size_t count, std::int64_t jobs, const Body& body) {
    std::vector<std::exception_ptr> failures(count);
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            try {
                body(i);
            } catch (...) {
                failures[i] = std::current_exception();
            }
        }
    };
    {
        std::vector<std::jthread> threads;
        const auto wanted = std::min(count, static_cast<std::size_t>(std::max<std::int64_t>(jobs, 1)));
        for (std::size_t job = 1; job < wanted; ++job) {
            threads.emplace_back(work);
        }
        work();
    }
    for (const std::exception_ptr& failure : failures) {
        if (failure) {
            std::rethrow_exception(failure);
        }
    }
}

}  // namespace millrace
