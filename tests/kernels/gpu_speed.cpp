#include "tests/kernels/gpu_speed.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "kernels/random.h"
#include "model/generation.h"
#include "model/shape.h"
#include "model/training.h"
#include "tests/kernels/gpu_evidence.h"

namespace millrace::test {
namespace {

// The model, task and batch of the default learner.
constexpr ModelShape shape{.layers = 2, .width = 32, .heads = 2, .mlp_width = 128, .vocabulary = 20, .context = 18};
constexpr int prompt_tokens = 9;
constexpr int answer_room = 9;
constexpr int sequence_tokens = prompt_tokens + answer_room;
constexpr int batch = 64;
constexpr int group_size = 8;

// What an H200 was measured to reach: a copy of large arrays, and large matrix products. On another device fractions of
// the floor mean something else.
constexpr double bytes_per_second = 4.3e12;
constexpr double tensor_operations_per_second = 780e12;
/// Generation multiplies outside of the tensor cores: 132 multiprocessors x 128 lanes x 2 x 1.98 GHz.
constexpr double scalar_operations_per_second = 66e12;

/// Bytes that a training step moves if every operation reads its inputs and writes its outputs once, per token of the
/// batch. Real numbers take 4 bytes, operands 2.
double training_bytes_per_token() {
    const double d = shape.width;
    const double f = shape.mlp_width;
    const double v = shape.vocabulary;
    const double scores = shape.heads * (sequence_tokens - 1);
    const double norm = 4 * d + 2 * d;
    const double norm_backward = 2 * d + 4 * d + 8 * d;  // dy, x, and dx read and written
    const double rounded = 4 * d + 2 * d;
    const auto products = [](double in, double out) { return 2 * (2 * in + 2 * out); };  // dx and dW
    const double forward = norm + (2 * d + 6 * d)                                        // qkv
                           + (6 * d + 2 * d + 2 * scores)                                // attention
                           + (2 * d + 8 * d)                                             // added to the residual stream
                           + norm + (2 * d + 2 * f) + 4 * f                              // up, ReLU
                           + (2 * f + 8 * d);                                            // down
    const double backward = rounded + products(f, d) + 6 * f                             // down, ReLU
                            + products(d, f) + norm_backward                             // up
                            + rounded + products(d, d)                                   // attention's output
                            + (6 * d + 2 * d + 6 * d + 6 * scores)                       // attention
                            + products(d, 3 * d) + norm_backward;                        // qkv
    const double ends = 4 * d + norm + (2 * d + 4 * v) + 4 * v + 6 * v + products(d, v) + norm_backward + 4 * d;
    return shape.layers * (forward + backward) + ends;
}

double matrix_parameters() {
    const double d = shape.width;
    return shape.layers * (4 * d * d + 2 * d * shape.mlp_width) + d * shape.vocabulary;
}

/// Median of several measurements of as many runs as take long enough to be measured.
double seconds_of(const std::function<void()>& work) {
    using Clock = std::chrono::steady_clock;
    const auto timed = [&](int runs) {
        const Clock::time_point start = Clock::now();
        for (int i = 0; i < runs; ++i) {
            work();
        }
        return std::chrono::duration<double>(Clock::now() - start).count() / runs;
    };
    timed(5);  // records graphs, chooses algorithms
    const int runs = std::clamp(static_cast<int>(0.2 / timed(3)), 1, 1000);
    std::vector<double> seconds;
    for (int i = 0; i < 5; ++i) {
        seconds.push_back(timed(runs));
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
}

Token digit(std::uint64_t index) {
    return static_cast<Token>(learner_bits(1, LearnerPurpose::test, index).word[0] % 10);
}

std::vector<TaskRollout> rollouts(int replicas) {
    const auto s = static_cast<std::size_t>(replicas);
    std::vector<TaskRollout> made(batch);
    std::uint64_t draw = 0;
    for (TaskRollout& rollout : made) {
        rollout.tokens.resize(s * sequence_tokens);
        std::generate(rollout.tokens.begin(), rollout.tokens.end(), [&] { return digit(++draw); });
        rollout.answer_tokens.assign(s, answer_room);
        rollout.log_probability.assign(s * answer_room, -2.0);
        rollout.advantage.assign(s, draw % 2 == 0 ? 1.0 : -1.0);
    }
    return made;
}

std::vector<float> start_weights() {
    const std::vector<double> weights = initial_weights(shape, 1);
    return {weights.begin(), weights.end()};
}

void note(const std::string& what, int replicas, double tokens, double seconds, double floor_seconds) {
    evidence().speeds.push_back({.what = what,
                                 .replicas = replicas,
                                 .sequences = batch,
                                 .tokens_per_second = tokens / seconds,
                                 .seconds = seconds,
                                 .floor_seconds = floor_seconds});
    std::printf("%-14s S %2d: %10.1f us, %8.3f Mtok/s, %5.1f %% of the counted floor\n", what.c_str(), replicas,
                1e6 * seconds, 1e-6 * tokens / seconds, 100 * floor_seconds / seconds);
}

/// An update with everything that a learner's user waits for: packing and uploading the batch, statistics and all.
void measure_update(Backend<Mixed>& backend, int replicas) {
    Trainer<Mixed> trainer(backend, shape, replicas, prompt_tokens, sequence_tokens);
    trainer.start(start_weights());
    const std::vector<TaskRollout> made = rollouts(replicas);
    std::vector<const TaskRollout*> all;
    for (const TaskRollout& rollout : made) {
        all.push_back(&rollout);
    }
    const double tokens = static_cast<double>(replicas) * batch * (sequence_tokens - 1);
    const double seconds = seconds_of([&] { trainer.update(all, ObjectiveSettings{}, OptimizerSettings{}, 1e-6); });
    const double optimizer_bytes = replicas * static_cast<double>(places_of(shape).size) * (4 + 4 + 3 * 8 + 2);
    const double floor = std::max((tokens * training_bytes_per_token() + optimizer_bytes) / bytes_per_second,
                                  6 * tokens * matrix_parameters() / tensor_operations_per_second);
    note("update", replicas, tokens, seconds, floor);
}

void measure_generation(Backend<Mixed>& backend, int replicas) {
    Generator<Mixed> generator(backend, shape, prompt_tokens, answer_room);
    Weights<Mixed> weights(backend, shape, replicas);
    weights.upload(start_weights());
    GenerationRequest request;
    request.prompts = batch / group_size;
    request.copies = group_size;
    std::vector<Token> prompts(static_cast<std::size_t>(replicas * request.prompts * prompt_tokens));
    std::uint64_t draw = 0;
    std::generate(prompts.begin(), prompts.end(), [&] { return digit(++draw); });
    std::vector<std::uint64_t> seeds(static_cast<std::size_t>(replicas), 7);
    std::vector<std::uint64_t> ids(static_cast<std::size_t>(replicas * batch));
    std::generate(ids.begin(), ids.end(), [&] { return ++draw; });
    request.prompt_tokens = prompts;
    request.seeds = seeds;
    request.sequence_ids = ids;

    double answers = 0.0;
    for (const std::int32_t length : generator.generate(weights, request).answer_tokens) {
        answers += length;
    }
    const double seconds = seconds_of([&] { generator.generate(weights, request); });
    const double read = answers + static_cast<double>(replicas * request.prompts * prompt_tokens);
    note("generation", replicas, answers, seconds, 2 * read * matrix_parameters() / scalar_operations_per_second);
}

}  // namespace

void measure_speed(Backend<Mixed>& backend) {
    for (const int replicas : {1, 64}) {
        measure_update(backend, replicas);
        measure_generation(backend, replicas);
    }
}

}  // namespace millrace::test
