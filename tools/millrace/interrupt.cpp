#include "tools/millrace/interrupt.h"

namespace millrace {
namespace {

std::atomic<bool> came{false};

sigset_t interrupts() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

/// As if nobody had asked to be told.
void end_program(int signal) {
    const sigset_t set = interrupts();
    std::signal(signal, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    std::raise(signal);
}

}  // namespace

const std::atomic<bool>& interrupted() {
    return came;
}

InterruptGuard::InterruptGuard() {
    const sigset_t set = interrupts();
    pthread_sigmask(SIG_BLOCK, &set, &previous_);
    waiting_ = std::thread([this, set] {
        int signal = 0;
        while (sigwait(&set, &signal) == 0 && !over_) {
            if (came.exchange(true)) {
                end_program(signal);
            }
        }
    });
}

InterruptGuard::~InterruptGuard() {
    over_ = true;
    pthread_kill(waiting_.native_handle(), SIGTERM);  // so that it looks up
    waiting_.join();
    pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

}  // namespace millrace
