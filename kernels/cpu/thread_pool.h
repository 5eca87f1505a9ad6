// A few threads that work on numbered tasks together with the thread that asks for it.
#pragma once

#include <functional>
#include <memory>

namespace millrace {

class ThreadPool {
   public:
    /// `threads` >= 1 includes the caller's own: a pool of one starts no thread.
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const;

    /// Runs task(0, lane), ..., task(tasks - 1, lane) with lanes from 0 to min(tasks, threads()) - 1, no two at a time
    /// in one lane, and waits for all; the other threads sleep on. If tasks throw, the rest is still run and the
    /// exception of the lowest task comes out. A task must not call run() itself.
    void run(int tasks, const std::function<void(int task, int lane)>& task);

   private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace millrace
