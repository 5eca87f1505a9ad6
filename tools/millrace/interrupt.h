// Stopping in good order when somebody presses Ctrl-C.
#pragma once

#include <atomic>
#include <csignal>

namespace millrace {

/// Whether an interrupt has come since the program started.
const std::atomic<bool>& interrupted();

/// While it lives, the first interrupt asks the run to stop; the default action is back for a second one.
class InterruptGuard {
   public:
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;

   private:
    struct sigaction previous_interrupt_ {};
    struct sigaction previous_terminate_ {};
};

}  // namespace millrace
