// The CUDA backend on a real GPU, judged by the reference in double precision on the CPU. Run by tools/gpu-check.
//
// Compiled with MILLRACE_EMULATE_CUDA this very program runs on the emulator, so that what checks the GPU is itself
// checked where there is none.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/kernels/compare.h"
#include "tests/kernels/gpu_evidence.h"
#include "tests/kernels/gpu_speed.h"
#include "tests/kernels/small_transformer.h"
#if defined(MILLRACE_EMULATE_CUDA)
#include "tests/kernels/emulated_backend.h"
#else
#include "kernels/cuda/load.h"
#include "kernels/devices.h"
#endif

namespace millrace::test {
namespace {

Backend<Mixed>& gpu() {
#if defined(MILLRACE_EMULATE_CUDA)
    static EmulatedBackend<Mixed> backend;
    return backend;
#else
    static const std::unique_ptr<Backend<Mixed> > backend = make_cuda_backend();
    return *backend;
#endif
}

std::vector<Shape> gpu_shapes() {
#if defined(MILLRACE_EMULATE_CUDA)
    return {{.sequences = 2, .tokens = 3, .width = 16, .heads = 2, .mlp = 24, .vocabulary = 9, .context = 4}};
#else
    std::vector<Shape> shapes = case_shapes();
    // The default model with its batch of 64, and a wider one: what training really multiplies.
    shapes.push_back(
        {.sequences = 64, .tokens = 17, .width = 32, .heads = 2, .mlp = 128, .vocabulary = 20, .context = 18});
    shapes.push_back(
        {.sequences = 32, .tokens = 24, .width = 128, .heads = 4, .mlp = 512, .vocabulary = 20, .context = 24});
    return shapes;
#endif
}

std::string operation_of(const std::string& name) {
    return name.substr(0, name.find(' '));
}

/// Results that are operands are rounded to bf16: an error of at most 2^-9, a third of its square on average. Results
/// in fp32 differ by what rounding activations on the way did.
constexpr double bf16_limit = 2e-5;

TEST_CASE("every operation agrees with double precision") {
    const auto reference = make_reference_backend(1);
    const auto cases = kernel_cases<Mixed>(gpu_shapes());
    const auto reference_cases = kernel_cases<Float64>(gpu_shapes());
    const Setting setting{.replicas = 2, .given = {}, .round_real = round_to_float, .round_operand = round_to_bf16};
    for (std::size_t i = 0; i < cases.size(); ++i) {
        CAPTURE(cases[i].name);
        const Outcome got = run_case(cases[i], gpu(), setting);
        for (const auto& [array, numbers] : run_case(reference_cases[i], *reference, setting)) {
            CAPTURE(array);
            const double error = normalised_square_error(got.at(array), numbers);
            CHECK(error < bf16_limit);
            evidence().note(operation_of(cases[i].name) + ", NMSE", error, bf16_limit, cases[i].name + ", " + array);
        }
    }
}

TEST_CASE("every operation gives the same bits again") {
    for (const KernelCase<Mixed>& one : kernel_cases<Mixed>(gpu_shapes())) {
        CAPTURE(one.name);
        const Outcome first = run_case(one, gpu(), {.replicas = 2});
        const Outcome second = run_case(one, gpu(), {.replicas = 2});
        for (const auto& [array, numbers] : first) {
            const bool same = same_bits(second.at(array), numbers);
            CHECK_MESSAGE(same, array);
            evidence().note("repetition, different arrays", same ? 0.0 : 1.0, 0.0, one.name + ", " + array);
        }
    }
}

TEST_CASE("replicas at once are single replicas, bit for bit, but for matrix products") {
    // cuBLASLt may add up a batch of products in another order than a single one.
    for (const KernelCase<Mixed>& one : kernel_cases<Mixed>(gpu_shapes())) {
        if (one.name.starts_with("linear")) {
            continue;
        }
        CAPTURE(one.name);
        const Outcome together = run_case(one, gpu(), {.replicas = 2});
        for (int s = 0; s < 2; ++s) {
            const Outcome alone = run_case(one, gpu(), {.first_replica = s});
            for (const auto& [array, numbers] : together) {
                if (alone.at(array).size() * 2 != numbers.size()) {
                    CHECK(one.name.starts_with("sum_parts"));  // has an array more when there is one replica
                    continue;
                }
                const auto half = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2) * s;
                const std::vector<double> part(half, half + static_cast<std::ptrdiff_t>(numbers.size() / 2));
                const bool same = same_bits(alone.at(array), part);
                CHECK_MESSAGE(same, array);
                evidence().note("replicas, different arrays", same ? 0.0 : 1.0, 0.0, one.name + ", " + array);
            }
        }
    }
}

GenerationShape generation_shape() {
    GenerationShape shape;
#if defined(MILLRACE_EMULATE_CUDA)
    shape.context = 12;
#else
    shape.replicas = 4;
    shape.prompts = 8;
    shape.copies = 8;
#endif
    return shape;
}

double share_of_different_numbers(const std::vector<double>& a, const std::vector<double>& b) {
    std::size_t different = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        different += a[i] != b[i] ? 1u : 0u;
    }
    return static_cast<double>(different) / static_cast<double>(a.size());
}

TEST_CASE("a replayed record gives the bits of single launches") {
    SmallTransformer<Mixed> eager(gpu(), generation_shape(), 5);
    eager.generate_by_steps();
    const Generated want = eager.result();
    SmallTransformer<Mixed> model(gpu(), generation_shape(), 5);
    model.prepare();                        // memory comes before the record
    for (int time = 0; time < 4; ++time) {  // launches, the recording, and replays
        gpu().repeatable(42, [&] { model.generate_by_steps(); });
        const Generated got = model.result();
        CHECK(got.tokens == want.tokens);
        const double different = share_of_different_numbers(got.log_probability, want.log_probability);
        CHECK(different == 0.0);
        evidence().note("graph replay, share of different numbers", different, 0.0,
                        "generation by steps, time " + std::to_string(time));
    }
}

TEST_CASE("fused generation draws what generation by steps draws") {
    SmallTransformer<Mixed> by_steps(gpu(), generation_shape(), 5);
    by_steps.generate_by_steps();
    const Generated want = by_steps.result();
    SmallTransformer<Mixed> fused(gpu(), generation_shape(), 5);
    REQUIRE(fused.generate_fused());
    const Generated got = fused.result();

    // Sums in another order move a probability by up to a bf16 rounding, and then a draw near the border of two tokens
    // may fall on the other; the rest of its sequence is another one.
    const auto context = static_cast<std::size_t>(generation_shape().context);
    const std::size_t sequences = want.ended.size();
    std::size_t parted = 0;
    double distance = 0.0;
    for (std::size_t i = 0; i < sequences; ++i) {
        for (std::size_t t = i * context; t < (i + 1) * context; ++t) {
            if (got.tokens[t] != want.tokens[t]) {
                ++parted;
                break;
            }
            distance = std::max(distance, std::abs(got.log_probability[t] - want.log_probability[t]));
        }
    }
    const double share = static_cast<double>(parted) / static_cast<double>(sequences);
    constexpr double most_parted = 0.1;
    constexpr double most_distance = 0.1;
    CHECK(share <= most_parted);
    CHECK(distance <= most_distance);
    evidence().note("fused generation, share of sequences that part", share, most_parted, "256 sequences");
    evidence().note("fused generation, log-probability", distance, most_distance, "largest difference");

    fused.generate_fused();
    CHECK(fused.result().tokens == got.tokens);
}

}  // namespace

void write_evidence(const std::string& path) {
    nlohmann::json checks = nlohmann::json::array();
    for (const CheckRecord& check : evidence().checks) {
        checks.push_back({{"name", check.name},
                          {"worst", std::isfinite(check.worst) ? nlohmann::json(check.worst) : nlohmann::json()},
                          {"limit", check.limit},
                          {"where", check.where},
                          {"passed", check.passed()}});
    }
    nlohmann::json speeds = nlohmann::json::array();
    for (const SpeedRecord& speed : evidence().speeds) {
        speeds.push_back(
            {{"what", speed.what},
             {"by", "millrace"},
             {"replicas", speed.replicas},
             {"sequences", speed.sequences},
             {"tokens_per_second", speed.tokens_per_second},
             {"seconds", speed.seconds},
             {"fraction_of_floor",
              speed.floor_seconds > 0 ? nlohmann::json(speed.floor_seconds / speed.seconds) : nlohmann::json()}});
    }
    std::ofstream(path) << nlohmann::json{{"device", evidence().device}, {"checks", checks}, {"speeds", speeds}}.dump(2)
                        << "\n";
}

}  // namespace millrace::test

/// Options beside doctest's: --evidence=FILE writes what was found; --speed measures instead of checking.
int main(int argc, char** argv) {
    using namespace millrace;
    using namespace millrace::test;
    std::string file;
    bool speed = false;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if (option.starts_with("--evidence=")) {
            file = option.substr(std::string("--evidence=").size());
        } else if (option == "--speed") {
            speed = true;
        }
    }
#if !defined(MILLRACE_EMULATE_CUDA)
    if (const CudaDevices found = find_cuda_devices(); found.devices.empty()) {
        std::printf("Not run: %s\n", found.why_none.c_str());
        return 77;  // skipped, for ctest
    }
#endif
    evidence().device = gpu().name();
    int result = 0;
    if (speed) {
        measure_speed(gpu());
    } else {
        doctest::Context context(argc, argv);
        result = context.run();
    }
    if (!file.empty()) {
        write_evidence(file);
    }
    return result;
}
