// The emulator on kernels whose results are known without it.
#include "kernels/emulator/emulator.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/launch.h"
#include "tests/kernels/sample_kernels.h"

// In the namespace of the kernels, and unnamed, since it is the names in it that are under test.
namespace millrace {
namespace {

using emulator::EmulationError;

constexpr unsigned all = 0xffffffffu;

/// Runs the test once for each of a few orders of the lanes.
template <typename Test>
void in_every_order(Test&& test) {
    for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
        CAPTURE(seed);
        emulator::set_lane_order(seed);
        test();
    }
    emulator::set_lane_order(0);
}

template <typename Launch>
std::string error_of(Launch&& launch_it) {
    try {
        launch_it();
    } catch (const EmulationError& error) {
        return error.what();
    }
    return "no error";
}

std::vector<float> numbers(int count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = std::sin(static_cast<float>(i));
    }
    return values;
}

// ---- threads, blocks and arguments ----------------------------------------------------------------------------------

__global__ void note_position(int* visits, int step) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    __syncthreads();  // the position is still the thread's own when its turn comes again
    visits[block * threads + thread] += step;
    step = 1000;  // its own copy
}

TEST_CASE("Each thread of each block runs once, with its own position and its own arguments") {
    in_every_order([] {
        std::vector<int> visits(2 * 3 * 2 * 5 * 4 * 3);
        MILLRACE_LAUNCH(note_position, dim3(2, 3, 2), dim3(5, 4, 3), 0, nullptr, visits.data(), 1);
        CHECK(visits == std::vector<int>(visits.size(), 1));
    });
}

// ---- shuffles and ballots -------------------------------------------------------------------------------------------

__global__ void shuffle_each_way(int* from_seven, double* neighbours, int* third_next, int* first_of_eight) {
    const int lane = static_cast<int>(threadIdx.x);
    from_seven[lane] = __shfl_sync(all, 10 * lane, 7);
    neighbours[lane] = __shfl_xor_sync(all, 0.5 + lane, 1);
    third_next[lane] = __shfl_down_sync(all, lane, 3);
    first_of_eight[lane] = __shfl_sync(all, lane, 0, 8);
}

TEST_CASE("A shuffle gives the value of the lane that it names, and beyond the edge the lane's own") {
    in_every_order([] {
        std::vector<int> from_seven(32), third_next(32), first_of_eight(32);
        std::vector<double> neighbours(32);
        MILLRACE_LAUNCH(shuffle_each_way, 1, 32, 0, nullptr, from_seven.data(), neighbours.data(), third_next.data(),
                        first_of_eight.data());
        for (std::size_t i = 0; i < 32; ++i) {
            const int lane = static_cast<int>(i);
            CHECK(from_seven[i] == 70);
            CHECK(neighbours[i] == 0.5 + (lane % 2 == 0 ? lane + 1 : lane - 1));
            CHECK(third_next[i] == (lane < 29 ? lane + 3 : lane));
            CHECK(first_of_eight[i] == lane / 8 * 8);
        }
    });
}

__global__ void sum_by_parts(int* sums) {
    const int lane = static_cast<int>(threadIdx.x);
    int value = lane;
    if (lane < 16) {
        for (int distance = 8; distance > 0; distance /= 2) {
            value += __shfl_xor_sync(0x0000ffffu, value, distance);
        }
    } else {
        for (int distance = 8; distance > 0; distance /= 2) {
            value += __shfl_down_sync(0xffff0000u, value, static_cast<unsigned>(distance), 16);
        }
    }
    sums[lane] = value;
}

TEST_CASE("Parts of a warp that name different lanes meet apart") {
    in_every_order([] {
        std::vector<int> sums(32);
        MILLRACE_LAUNCH(sum_by_parts, 1, 32, 0, nullptr, sums.data());
        CHECK(sums[0] == 120);
        CHECK(sums[15] == 120);
        CHECK(sums[16] == 376);
    });
}

__global__ void vote(unsigned* votes) {
    const unsigned thread = threadIdx.x;
    votes[thread] = __ballot_sync(all, thread % 3 == 0);
}

TEST_CASE("A ballot has a bit for each lane of its own warp, and none for a lane that never was") {
    in_every_order([] {
        std::vector<unsigned> votes(40);
        MILLRACE_LAUNCH(vote, 1, 40, 0, nullptr, votes.data());
        for (std::size_t thread = 0; thread < votes.size(); ++thread) {
            unsigned expected = 0;
            for (unsigned voter = thread < 32 ? 0 : 32; voter < (thread < 32 ? 32u : 40u); ++voter) {
                expected |= voter % 3 == 0 ? 1u << voter % 32 : 0u;
            }
            CHECK(votes[thread] == expected);
        }
    });
}

// ---- barriers and shared memory -------------------------------------------------------------------------------------

__device__ float block_sum(float value) {
    MILLRACE_SHARED(float[32], of_warp);
    const unsigned thread = threadIdx.x + blockDim.x * threadIdx.y;
    const unsigned warps = (blockDim.x * blockDim.y + 31) / 32;
    for (int distance = 16; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(all, value, distance);
    }
    __syncthreads();
    if (thread % 32 == 0) {
        of_warp[thread / 32] = value;
    }
    __syncthreads();
    float sum = 0;
    for (unsigned warp = 0; warp < warps; ++warp) {
        sum += of_warp[warp];
    }
    return sum;
}

__global__ void sums_of_threads(float* sums) {
    const float thread = static_cast<float>(threadIdx.x + blockDim.x * threadIdx.y);
    sums[0] = block_sum(thread);
    sums[1] = block_sum(thread * thread);
}

TEST_CASE("Warps of a block meet at its barriers") {
    in_every_order([] {
        std::vector<float> sums(2);
        MILLRACE_LAUNCH(sums_of_threads, 1, dim3(16, 16), 0, nullptr, sums.data());
        CHECK(sums[0] == 255.0f * 256 / 2);
        CHECK(sums[1] == 255.0f * 256 * 511 / 6);
    });
}

__global__ void leave_early(int* last, int staying) {
    MILLRACE_SHARED(int[64], values);
    const int thread = static_cast<int>(threadIdx.x);
    if (thread >= staying) {
        return;
    }
    values[thread] = thread;
    __syncthreads();
    last[thread] = values[staying - 1 - thread];
    __syncwarp();
}

TEST_CASE("Threads that have exited count as arrived") {
    in_every_order([] {
        for (const int staying : {1, 20, 32, 45}) {
            std::vector<int> mirrored(64, -1);
            MILLRACE_LAUNCH(leave_early, 1, 64, 0, nullptr, mirrored.data(), staying);
            for (int thread = 0; thread < 64; ++thread) {
                CHECK(mirrored[static_cast<std::size_t>(thread)] == (thread < staying ? staying - 1 - thread : -1));
            }
        }
    });
}

__global__ void use_shared_memory(float* before) {
    MILLRACE_DYNAMIC_SHARED(float, dynamic);
    MILLRACE_SHARED(double[32], fixed);
    const unsigned lane = threadIdx.x;
    before[blockIdx.x * 64 + lane] = dynamic[lane];
    before[blockIdx.x * 64 + 32 + lane] = static_cast<float>(fixed[lane]);
    dynamic[lane] = 1;
    fixed[lane] = 1;
}

TEST_CASE("Shared memory is NaN when a block starts, whatever the block before has left there") {
    std::vector<float> before(3 * 64);
    MILLRACE_LAUNCH(use_shared_memory, 3, 32, 32 * sizeof(float), nullptr, before.data());
    for (const float value : before) {
        CHECK(std::isnan(value));
    }
}

// ---- what is reported -----------------------------------------------------------------------------------------------

enum class Mistake {
    shuffle_from_outside,
    shuffle_by_outsider,
    half_a_barrier,
    two_barriers,
    shuffle_against_barrier,
    odd_width,
};

__global__ void make_mistake(Mistake mistake) {
    const unsigned lane = threadIdx.x;
    const bool is_low = lane < 16;
    switch (mistake) {
        case Mistake::shuffle_from_outside:
            if (is_low) {
                __shfl_xor_sync(0x0000ffffu, lane, 16);
            }
            break;
        case Mistake::shuffle_by_outsider:
            __shfl_sync(0x0000ffffu, lane, 0);
            break;
        case Mistake::half_a_barrier:
            if (is_low) {
                __syncthreads();
            }
            __syncwarp();
            break;
        case Mistake::two_barriers:
            if (is_low) {
                __syncthreads();
            } else {
                __syncthreads();
            }
            break;
        case Mistake::shuffle_against_barrier:
            if (is_low) {
                __shfl_sync(all, lane, 0);
            } else {
                __syncthreads();
            }
            break;
        case Mistake::odd_width:
            __shfl_sync(all, lane, 0, 12);
            break;
    }
}

std::string report_of(Mistake mistake) {
    return error_of([=] { MILLRACE_LAUNCH(make_mistake, dim3(1, 2), dim3(32), 0, nullptr, mistake); });
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST_CASE("A shuffle across its mask is reported with the thread and the line") {
    const std::string from_outside = report_of(Mistake::shuffle_from_outside);
    CHECK(contains(from_outside, "Kernel make_mistake, block (0, 0, 0), thread ("));
    CHECK(contains(from_outside, "emulator_test.cpp:"));
    CHECK(contains(from_outside, ", which its mask 0xffff does not name."));
    CHECK(contains(report_of(Mistake::shuffle_by_outsider), "thread (16, 0, 0), emulator_test.cpp:"));
    CHECK(contains(report_of(Mistake::shuffle_by_outsider), "is called by lane 16, which its mask 0xffff"));
    CHECK(contains(report_of(Mistake::odd_width), "a power of two up to 32, not 12."));
}

TEST_CASE("A barrier that threads do not reach is reported with where everyone waits, in every order") {
    in_every_order([] {
        const std::string half = report_of(Mistake::half_a_barrier);
        CHECK(contains(half, "no thread can go on"));
        CHECK(contains(half, "Thread (0, 0, 0) and 15 more wait in __syncthreads at emulator_test.cpp:"));
        CHECK(contains(half, "Thread (16, 0, 0) and 15 more wait in __syncwarp with mask 0xffffffff at"));
        CHECK(contains(report_of(Mistake::two_barriers), "while others of its block wait in the one at"));
        CHECK(contains(report_of(Mistake::shuffle_against_barrier), "no thread can go on"));
    });
}

TEST_CASE("After an error the next launch runs as if nothing had happened") {
    for (int i = 0; i < 3; ++i) {
        CHECK(report_of(Mistake::half_a_barrier) != "no error");
        std::vector<float> sums(2);
        MILLRACE_LAUNCH(sums_of_threads, 1, dim3(16, 16), 0, nullptr, sums.data());
        CHECK(sums[0] == 255.0f * 256 / 2);
    }
}

__global__ void do_nothing() {}
__global__ void launch_another() {
    MILLRACE_LAUNCH(do_nothing, 1, 1, 0, nullptr);
}
__global__ void take_much() {
    MILLRACE_SHARED(float[10 * 1024], values);
    values[0] = 0;
}

TEST_CASE("A launch that a device refuses is refused") {
    const auto launched = [](dim3 grid, dim3 block, std::size_t shared_bytes) {
        return error_of([&] { MILLRACE_LAUNCH(do_nothing, grid, block, shared_bytes, nullptr); });
    };
    CHECK(launched(1, 1024, 227 * 1024) == "no error");
    CHECK(contains(launched(0, 32, 0), "a grid of (0, 1, 1) blocks"));
    CHECK(contains(launched(dim3(1, 65536), 32, 0), "a grid of (1, 65536, 1) blocks"));
    CHECK(contains(launched(1, 0, 0), "blocks of (0, 1, 1) threads"));
    CHECK(contains(launched(1, dim3(32, 33), 0), "blocks of (32, 33, 1) threads"));
    CHECK(contains(launched(1, 32, 227 * 1024 + 1), "a block has at most 232448."));
    CHECK(contains(error_of([] { MILLRACE_LAUNCH(launch_another, 1, 1, 0, nullptr); }), "only the host launches"));
    // Beyond 48 KiB a kernel has to ask, and launch.h asks for dynamic memory only.
    CHECK(error_of([] { MILLRACE_LAUNCH(take_much, 1, 1, 64 * 1024, nullptr); }) == "no error");
    CHECK(contains(error_of([] { MILLRACE_LAUNCH(take_much, 1, 1, 16 * 1024, nullptr); }), "both together 49152."));
}

#if !defined(__SANITIZE_ADDRESS__)  // which would end the program at the write itself: see emulator_bounds
__global__ void write_at(int index) {
    MILLRACE_SHARED(float[32], first);
    MILLRACE_SHARED(float[32], second);
    first[threadIdx.x] = second[threadIdx.x] = 0;
    float* const values = first;
    if (threadIdx.x == 0) {
        values[index] = std::numeric_limits<float>::quiet_NaN();
    }
}

TEST_CASE("A write beyond a shared variable is reported, even of a NaN") {
    const auto written = [](int index) {
        return error_of([=] { MILLRACE_LAUNCH(write_at, 1, 32, 0, nullptr, index); });
    };
    CHECK(written(31) == "no error");
    const std::string past_end = written(32);
    CHECK(contains(past_end, "Kernel write_at, block (0, 0, 0): a thread wrote before the beginning or past the end"));
    CHECK(contains(past_end, "of first, which has 128 bytes."));
    CHECK(written(-1) == past_end);
    CHECK(written(255) == past_end);  // still within a guard zone
}
#endif

// ---- planted faults -------------------------------------------------------------------------------------------------

std::vector<float> tiled_product(Fault fault) {
    const int rows = 13, columns = 11, inner = 18;
    std::vector<float> product(rows * columns);
    multiply_tiled(fault, numbers(rows * inner).data(), numbers(inner * columns).data(), product.data(), rows, columns,
                   inner);
    return product;
}

TEST_CASE("A matrix product in tiles is right in every order, and wrong in every order without a barrier") {
    const std::vector<float> a = numbers(13 * 18), b = numbers(18 * 11);
    std::vector<float> expected;
    for (std::size_t row = 0; row < 13; ++row) {
        for (std::size_t column = 0; column < 11; ++column) {
            float sum = 0;  // the kernel adds in this order too; the zeros at its edges change nothing
            for (std::size_t i = 0; i < 18; ++i) {
                sum += a[row * 18 + i] * b[i * 11 + column];
            }
            expected.push_back(sum);
        }
    }
    in_every_order([&] {
        CHECK(tiled_product(Fault::none) == expected);
        CHECK(tiled_product(Fault::no_barrier_before_load) != expected);
        bool has_nan = false;
        for (const float value : tiled_product(Fault::no_barrier_after_load)) {
            has_nan = has_nan || std::isnan(value);
        }
        CHECK(has_nan);
    });
}

TEST_CASE("The same order gives the same bits, even of a kernel that races") {
    emulator::set_lane_order(5);
    const std::vector<float> once = tiled_product(Fault::no_barrier_before_load);
    CHECK(tiled_product(Fault::no_barrier_before_load) == once);
    emulator::set_lane_order(6);
    CHECK(tiled_product(Fault::no_barrier_before_load) != once);
    emulator::set_lane_order(0);
}

TEST_CASE("A shuffle that reads a lane that has exited is reported in every order") {
    const int rows = 3, columns = 20;
    const std::vector<float> x = numbers(rows * columns);
    std::vector<float> sums(rows);
    in_every_order([&] {
        sum_rows(Fault::none, x.data(), sums.data(), rows, columns);
        for (std::size_t row = 0; row < rows; ++row) {
            const auto first = x.begin() + static_cast<std::ptrdiff_t>(row * columns);
            CHECK(sums[row] == doctest::Approx(std::accumulate(first, first + columns, 0.0)).epsilon(1e-6));
        }
        const std::string report =
            error_of([&] { sum_rows(Fault::lane_has_exited, x.data(), sums.data(), rows, columns); });
        CHECK(contains(report, "__shfl_xor_sync reads lane "));
        CHECK(contains(report, ", which has exited or never was."));
        CHECK(contains(report, "sample_kernels.cu:"));
    });
}

TEST_CASE("Rows are reversed through dynamic shared memory, and elements rotated through memory, in every order") {
    const int rows = 5, columns = 20;
    const std::vector<float> x = numbers(rows * columns);
    in_every_order([&] {
        std::vector<float> reversed(rows * columns);
        reverse_rows(Fault::none, x.data(), reversed.data(), rows, columns);
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t i = 0; i < columns; ++i) {
                CHECK(reversed[row * columns + i] == x[row * columns + columns - 1 - i]);
            }
        }
        std::vector<float> rotated(96);
        rotate(Fault::none, x.data(), rotated.data(), 3);
        for (std::size_t i = 0; i < rotated.size(); ++i) {
            CHECK(rotated[i] == x[i / 32 * 32 + (i + 1) % 32]);
        }
    });
}

}  // namespace
}  // namespace millrace
