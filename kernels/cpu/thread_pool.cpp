#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace millrace {

struct ThreadPool::State {
    /// Each waits for itself, so that a run wakes no more of them than it has tasks for.
    struct Helper {
        std::condition_variable begin;
        bool wanted = false;
        std::thread thread;
    };

    std::mutex mutex;
    std::condition_variable end;
    bool stop = false;
    int working = 0;  ///< helpers that have taken up the run and not finished it

    const std::function<void(int, int)>* task = nullptr;
    int tasks = 0;
    std::atomic<int> next{0};
    int failed_task = 0;
    std::exception_ptr failure;

    std::vector<std::unique_ptr<Helper>> helpers;  ///< lane i + 1 is that of helpers[i]

    void work(int lane) {
        for (int i = next.fetch_add(1); i < tasks; i = next.fetch_add(1)) {
            try {
                (*task)(i, lane);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (i < failed_task) {
                    failed_task = i;
                    failure = std::current_exception();
                }
            }
        }
    }

    void wait_and_work(Helper& helper, int lane) {
        std::unique_lock lock(mutex);
        while (true) {
            helper.begin.wait(lock, [&] { return stop || helper.wanted; });
            if (stop) {
                return;
            }
            helper.wanted = false;
            ++working;
            lock.unlock();
            work(lane);
            lock.lock();
            if (--working == 0) {
                end.notify_one();
            }
        }
    }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
    assert(threads >= 1);
    for (int lane = 1; lane < threads; ++lane) {
        State::Helper& helper = *state_->helpers.emplace_back(std::make_unique<State::Helper>());
        helper.thread = std::thread([state = state_.get(), &helper, lane] { state->wait_and_work(helper, lane); });
    }
}

ThreadPool::~ThreadPool() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->stop = true;
    }
    for (const auto& helper : state_->helpers) {
        helper->begin.notify_one();
        helper->thread.join();
    }
}

int ThreadPool::threads() const {
    return static_cast<int>(state_->helpers.size()) + 1;
}

void ThreadPool::run(int tasks, const std::function<void(int, int)>& task) {
    State& state = *state_;
    const auto helpers = std::span(state.helpers)
                             .first(std::min(static_cast<std::size_t>(std::max(tasks - 1, 0)), state.helpers.size()));
    {
        const std::lock_guard lock(state.mutex);
        state.task = &task;
        state.tasks = tasks;
        state.next = 0;
        state.failed_task = std::numeric_limits<int>::max();
        state.failure = nullptr;
        for (const auto& helper : helpers) {
            helper->wanted = true;
        }
    }
    for (const auto& helper : helpers) {
        helper->begin.notify_one();
    }
    state.work(0);
    std::unique_lock lock(state.mutex);
    for (const auto& helper : helpers) {
        helper->wanted = false;  // all tasks are taken: who has not woken by now need not
    }
    state.end.wait(lock, [&] { return state.working == 0; });
    if (state.failure) {
        std::rethrow_exception(state.failure);
    }
}

}  // namespace millrace
