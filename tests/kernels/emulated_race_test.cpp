// The CUDA kernels with a thread of the system for every CUDA thread, so that ThreadSanitizer judges what is ordered by
// barriers and what only happened to come first. A block or two of everything: threads are dear.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "tests/kernels/cases.h"
#include "tests/kernels/emulated_backend.h"
#include "tests/kernels/small_transformer.h"

namespace millrace::test {
namespace {

TEST_CASE("no operation has a data race") {
    EmulatedBackend<Mixed> backend;
    const Shape tiny{.sequences = 1, .tokens = 3, .width = 6, .heads = 2, .mlp = 2, .vocabulary = 2, .context = 4};
    std::set<std::string> left = {"embedding",  "rms_norm",       "attention",   "attention_decode",
                                  "classifier", "objective_grpo", "global_norm", "sample"};
    for (const KernelCase<Mixed>& one : kernel_cases<Mixed>({tiny})) {
        CAPTURE(one.name);
        if (left.erase(one.name.substr(0, one.name.find(' '))) != 0) {  // the others' lanes have nothing in common
            CHECK_FALSE(run_case(one, backend).empty());
        }
    }
    CHECK(left.empty());
}

TEST_CASE("neither has fused generation, with everything in shared memory or nothing") {
    GenerationShape shape;
    shape.prompts = 2;
    shape.copies = 2;
    shape.layers = 2;
    shape.width = 8;
    shape.mlp_width = 16;
    shape.vocabulary = 5;
    shape.context = 5;
    shape.prompt_tokens = 3;
    shape.rule.end = 4;
    shape.rule.pad = 0;
    for (const std::size_t shared_bytes : {hopper_shared_bytes, std::size_t{3000}}) {
        EmulatedBackend<Mixed> backend(shared_bytes);
        SmallTransformer<Mixed> model(backend, shape, 1);
        CHECK(model.generate_fused());
    }
}

}  // namespace
}  // namespace millrace::test
