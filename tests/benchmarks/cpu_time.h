// The clock of comparisons within one process.
#pragma once

#include <ctime>

namespace millrace_test {

/// Of this thread, so that other processes on the machine disturb less.
inline double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace millrace_test
