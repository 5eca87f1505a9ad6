// Threads, memory and the choice of an instruction set.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "kernels/cpu/thread_pool.h"
#include "tests/kernels/compare.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("a pool runs every task once, no two at a time in one lane") {
    for (const int threads : {1, 2, 3, 7}) {
        CAPTURE(threads);
        ThreadPool pool(threads);
        for (const int tasks : {0, 1, 2, 50}) {
            CAPTURE(tasks);
            std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
            std::vector<std::atomic<int>> inside(static_cast<std::size_t>(threads));
            std::atomic<bool> crowded = false;
            pool.run(tasks, [&](int task, int lane) {
                crowded = crowded || inside[static_cast<std::size_t>(lane)]++ > 0;
                ++runs[static_cast<std::size_t>(task)];
                --inside[static_cast<std::size_t>(lane)];
            });
            CHECK(!crowded);
            for (const auto& count : runs) {
                CHECK(count == 1);
            }
        }
    }
}

TEST_CASE("the exception of the lowest task comes out of a pool, which goes on working") {
    ThreadPool pool(3);
    for (int round = 0; round < 20; ++round) {
        std::atomic<int> finished = 0;
        CHECK_THROWS_WITH_AS(pool.run(20,
                                      [&](int task, int) {
                                          if (task == 5 || task == 11) {
                                              throw std::runtime_error(std::to_string(task));
                                          }
                                          ++finished;
                                      }),
                             "5", std::runtime_error);
        CHECK(finished == 18);
    }
}

TEST_CASE("a pool wakes no more threads than there are tasks") {
    ThreadPool pool(8);
    for (int round = 0; round < 200; ++round) {
        std::atomic<int> begun = 0;
        std::atomic<int> highest_lane = 0;
        pool.run(3, [&](int, int lane) {
            ++begun;
            while (begun < 3) {  // so that each task is in a thread of its own
                std::this_thread::yield();
            }
            for (int seen = highest_lane; seen < lane && !highest_lane.compare_exchange_weak(seen, lane);) {
            }
        });
        REQUIRE(highest_lane == 2);
    }
}

TEST_CASE("one, two and three threads leave the same bytes") {
    for (const CpuUnderTest& cpu : cpus_under_test()) {
        CAPTURE(cpu.name);
        std::vector<Outcome> first;
        for (const int threads : {1, 2, 3}) {
            CAPTURE(threads);
            const auto backend = cpu.make(threads);
            CHECK(backend->lanes() == threads);
            const auto cases = kernel_cases<Float32>();
            std::vector<Outcome> outcomes(cases.size());
            // Cases as tasks: the operations run side by side, each in some lane.
            backend->parallel(static_cast<int>(cases.size()), [&](int task, int) {
                const auto i = static_cast<std::size_t>(task);
                outcomes[i] = run_case(cases[i], *backend);
            });
            if (first.empty()) {
                first = outcomes;
            }
            for (std::size_t i = 0; i < cases.size(); ++i) {
                CAPTURE(cases[i].name);
                for (const auto& [array, numbers] : first[i]) {
                    CAPTURE(array);
                    CHECK(same_bits(outcomes[i].at(array), numbers));
                }
            }
        }
    }
}

TEST_CASE("memory is aligned, and none is too little") {
    for (const CpuUnderTest& cpu : cpus_under_test()) {
        const auto backend = cpu.make(1);
        for (const std::size_t bytes : {0, 1, 63, 1000}) {
            void* memory = backend->allocate(bytes);
            REQUIRE(memory != nullptr);
            CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
            backend->clear(memory, bytes);
            backend->release(memory);
        }
    }
}

TEST_CASE("MILLRACE_CPU_ISA chooses the instruction set, and an unknown one is an error") {
    const char* before = std::getenv("MILLRACE_CPU_ISA");
    const std::string kept = before == nullptr ? "" : before;
    for (const InstructionSet set : available_instruction_sets()) {
        setenv("MILLRACE_CPU_ISA", name_of(set).c_str(), 1);
        CHECK(make_cpu_backend(2)->name().find(name_of(set)) != std::string::npos);
        CHECK(make_cpu_backend(2)->name().ends_with(", 2 threads"));
    }
    setenv("MILLRACE_CPU_ISA", "v5", 1);
    CHECK_THROWS_WITH_AS(make_cpu_backend(1), "MILLRACE_CPU_ISA is \"v5\"; it must be baseline, v3 or v4.",
                         std::runtime_error);
    if (before == nullptr) {
        unsetenv("MILLRACE_CPU_ISA");
        CHECK(make_cpu_backend(1)->name().find(name_of(available_instruction_sets().back())) != std::string::npos);
    } else {
        setenv("MILLRACE_CPU_ISA", kept.c_str(), 1);
    }
}

TEST_CASE("modules for wider instruction sets lie beside the program") {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
        CHECK(available_instruction_sets().size() >= 2);
    }
#endif
}
