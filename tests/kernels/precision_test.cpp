// The whole list of kernel cases in single precision against double, and the CPU backend's bodies against the shared
// ones.
#include <doctest/doctest.h>

#include "tests/kernels/compare.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("the CPU backend's own bodies compute what the shared ones do") {
    check_against_reference(*make_cpu_backend_float64(1), 1e-27, nullptr, nullptr);
}

TEST_CASE("single precision agrees with double on every instruction set of this machine") {
    for (const CpuUnderTest& cpu : cpus_under_test()) {
        CAPTURE(cpu.name);
        check_against_reference(*cpu.make(1), 1e-12, round_to_float, round_to_float);
    }
}
