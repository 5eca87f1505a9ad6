// Stopping in good order when somebody presses Ctrl-C.
#pragma once

#include <atomic>
#include <csignal>
#include <thread>

namespace millrace {

/// Whether an interrupt has come since the program started.
const std::atomic<bool>& interrupted();

/// While it lives, the first interrupt asks the run to stop, and a second one ends the program at once.
///
/// No handler runs on the thread that computes: oneDNN's products keep data below the stack pointer, where a signal's
/// frame is put (seen with 2.6.3 as a damaged heap). So the signals are blocked and a thread of its own waits for them.
/// Threads inherit what is blocked: make the guard before any thread that computes.
class InterruptGuard {
   public:
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;

   private:
    sigset_t previous_;
    std::atomic<bool> over_{false};
    std::thread waiting_;
};

}  // namespace millrace
