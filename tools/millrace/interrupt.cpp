#include "tools/millrace/interrupt.h"

namespace millrace {
namespace {

std::atomic<bool> came{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

}  // namespace

const std::atomic<bool>& interrupted() {
    return came;
}

InterruptGuard::InterruptGuard() {
    struct sigaction action {};
    action.sa_handler = [](int) { came = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &previous_interrupt_);
    sigaction(SIGTERM, &action, &previous_terminate_);
}

InterruptGuard::~InterruptGuard() {
    sigaction(SIGINT, &previous_interrupt_, nullptr);
    sigaction(SIGTERM, &previous_terminate_, nullptr);
}

}  // namespace millrace
