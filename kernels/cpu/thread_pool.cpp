#include "kernels/cpu/thread_pool.h"

#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace {

struct ThreadPool::State {
    std::mutex mutex;
    std::condition_variable begin;
    std::condition_variable end;
    std::uint64_t round = 0;  ///< counts calls of run(), so that a thread knows a new one from the last
    bool stop = false;
    int busy = 0;  ///< threads that have not finished the round

    const std::function<void(int, int)>* task = nullptr;
    int tasks = 0;
    std::atomic<int> next{0};
    int failed_task = 0;
    std::exception_ptr failure;

    std::vector<std::thread> threads;

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

    void wait_and_work(int lane) {
        std::uint64_t seen = 0;
        std::unique_lock lock(mutex);
        while (true) {
            begin.wait(lock, [&] { return stop || round != seen; });
            if (stop) {
                return;
            }
            seen = round;
            lock.unlock();
            work(lane);
            lock.lock();
            if (--busy == 0) {
                end.notify_one();
            }
        }
    }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
    assert(threads >= 1);
    for (int lane = 1; lane < threads; ++lane) {
        state_->threads.emplace_back([state = state_.get(), lane] { state->wait_and_work(lane); });
    }
}

ThreadPool::~ThreadPool() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->stop = true;
    }
    state_->begin.notify_all();
    for (std::thread& thread : state_->threads) {
        thread.join();
    }
}

int ThreadPool::threads() const {
    return static_cast<int>(state_->threads.size()) + 1;
}

void ThreadPool::run(int tasks, const std::function<void(int, int)>& task) {
    State& state = *state_;
    {
        const std::lock_guard lock(state.mutex);
        state.task = &task;
        state.tasks = tasks;
        state.next = 0;
        state.failed_task = std::numeric_limits<int>::max();
        state.failure = nullptr;
        if (tasks > 1) {
            state.busy = static_cast<int>(state.threads.size());
            ++state.round;
        }
    }
    if (tasks > 1) {
        state.begin.notify_all();
    }
    state.work(0);
    std::unique_lock lock(state.mutex);
    state.end.wait(lock, [&] { return state.busy == 0; });
    if (state.failure) {
        std::rethrow_exception(state.failure);
    }
}

}  // namespace millrace
