// The CUDA kernels, run by the emulator, against the reference in double precision: the whole list of kernel cases.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "kernels/emulator/emulator.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/emulated_backend.h"

namespace millrace::test {
namespace {

/// One block is followed by the next here, so a launch that would keep a GPU busy for microseconds takes milliseconds.
/// Nothing round, more than a warp of everything (positions, width of a head, vocabulary), and the model's own numbers.
std::vector<Shape> emulated_shapes() {
    return {
        {.sequences = 2, .tokens = 17, .width = 32, .heads = 2, .mlp = 64, .vocabulary = 20, .context = 18},
        {.sequences = 3, .tokens = 5, .width = 21, .heads = 3, .mlp = 50, .vocabulary = 13, .context = 7},
        {.sequences = 1, .tokens = 34, .width = 70, .heads = 2, .mlp = 40, .vocabulary = 37, .context = 40},
    };
}

TEST_CASE("in double precision the CUDA kernels compute what the reference does") {
    EmulatedBackend<Float64> backend;
    check_against_reference(backend, 1e-26, nullptr, nullptr, emulated_shapes());
}

TEST_CASE("in single precision they stay within its rounding") {
    EmulatedBackend<Float32> backend;
    check_against_reference(backend, 1e-12, round_to_float, round_to_float, emulated_shapes());
}

TEST_CASE("with bf16 operands they stay within the rounding of results to bf16") {
    EmulatedBackend<Mixed> backend;
    check_against_reference(backend, 2e-5, round_to_float, round_to_bf16, emulated_shapes());
}

TEST_CASE("the kernel for products that cuBLASLt refuses multiplies as well") {
    EmulatedBackend<Float64> exact(hopper_shared_bytes, EmulatedMatmul::plain_kernel);
    EmulatedBackend<Mixed> mixed(hopper_shared_bytes, EmulatedMatmul::plain_kernel);
    const std::vector<Shape> shapes = {
        {.sequences = 3, .tokens = 5, .width = 21, .heads = 3, .mlp = 50, .vocabulary = 13, .context = 7}};
    check_against_reference(exact, 1e-26, nullptr, nullptr, shapes);
    check_against_reference(mixed, 2e-5, round_to_float, round_to_bf16, shapes);
}

TEST_CASE("the order in which lanes and blocks run changes no bit") {
    EmulatedBackend<Mixed> backend;
    for (const KernelCase<Mixed>& one : kernel_cases<Mixed>(emulated_shapes())) {
        CAPTURE(one.name);
        emulator::set_lane_order(0);
        const Outcome natural = run_case(one, backend);
        for (const std::uint64_t order : {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{8}}) {
            emulator::set_lane_order(order);
            const Outcome other = run_case(one, backend);
            for (const auto& [array, numbers] : natural) {
                CAPTURE(array);
                CHECK(same_bits(other.at(array), numbers));
            }
        }
    }
    emulator::set_lane_order(0);
}

TEST_CASE("replicas at once are single replicas, bit for bit") {
    EmulatedBackend<Mixed> backend;
    check_replicas(backend, emulated_shapes());
}

}  // namespace
}  // namespace millrace::test
