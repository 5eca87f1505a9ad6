// Replicas that are computed together are the same bits as replicas that are computed one by one.
#include <doctest/doctest.h>

#include "tests/kernels/compare.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("replicas at once are single replicas, bit for bit") {
    check_replicas(*make_reference_backend(1));
    for (const CpuUnderTest& cpu : cpus_under_test()) {
        CAPTURE(cpu.name);
        check_replicas(*cpu.make(1));
    }
}
