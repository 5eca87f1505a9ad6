// Generation at once on the CPU draws the tokens that the separate operations draw.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/compare.h"
#include "tests/kernels/small_transformer.h"

using namespace millrace;
using namespace millrace::test;

namespace {

/// The default model; one prompt token; more copies than a block holds; heads of a narrow width, replicas; greedy.
std::vector<GenerationShape> shapes() {
    std::vector<GenerationShape> list(5);
    list[0].prompts = 7;
    list[1].layers = 1;
    list[1].prompt_tokens = 1;
    list[2].copies = 20;
    list[3].replicas = 3;
    list[3].width = 24;
    list[3].heads = 3;
    list[3].mlp_width = 50;
    list[3].vocabulary = 35;
    list[4].rule.greedy = true;
    return list;
}

template <typename P>
void check_generation(Backend<P>& backend, double tolerance) {
    for (const GenerationShape& shape : shapes()) {
        CAPTURE(shape.width);
        CAPTURE(shape.copies);
        const auto reference = make_reference_backend(1);
        SmallTransformer<Float64> by_steps(*reference, shape, 20);
        by_steps.generate_by_steps();
        SmallTransformer<P> at_once(backend, shape, 20);
        const Generated want = by_steps.result();
        for (int repetition = 0; repetition < 2; ++repetition) {
            REQUIRE(at_once.generate_fused());
            const Generated got = at_once.result();
            CHECK(got.tokens == want.tokens);
            CHECK(got.ended == want.ended);
            double distance = 0;
            for (std::size_t i = 0; i < want.log_probability.size(); ++i) {
                distance = std::max(distance, std::abs(got.log_probability[i] - want.log_probability[i]));
            }
            CHECK(distance < tolerance);
        }
    }
}

}  // namespace

TEST_CASE("generation at once draws the tokens of generation by steps") {
    check_generation(*make_cpu_backend_float64(1), 1e-10);
    for (const CpuUnderTest& cpu : cpus_under_test()) {
        CAPTURE(cpu.name);
        check_generation(*cpu.make(1), 2e-5);
    }
}

TEST_CASE("heads of an odd width and large vocabularies are left to the steps") {
    const auto backend = make_cpu_backend(1);
    GenerationShape odd;
    odd.width = 21;
    odd.heads = 3;
    SmallTransformer<Float32> model(*backend, odd, 20);
    CHECK(!model.generate_fused());
    GenerationShape many;
    many.vocabulary = 300;
    SmallTransformer<Float32> other(*backend, many, 20);
    CHECK(!other.generate_fused());
}
