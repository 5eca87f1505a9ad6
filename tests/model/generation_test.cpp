#include "model/generation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/instruction_set.h"
#include "model/warm_start.h"
#include "tests/model/small_model.h"

using namespace millrace;
using namespace millrace::test;

namespace {

/// Prompts of sort3 for all replicas, and everything else a request points to.
struct Wanted {
    int replicas = 1;
    int prompts = 4;
    int copies = 4;
    std::vector<Token> prompt_tokens;
    std::vector<std::uint64_t> seeds;
    std::vector<std::uint64_t> ids;

    Wanted(int replica_count, int prompt_count, int copy_count)
        : replicas(replica_count), prompts(prompt_count), copies(copy_count) {
        const Task task(sort3);
        for (int s = 0; s < replicas; ++s) {
            seeds.push_back(static_cast<std::uint64_t>(s) + 1);
            for (int i = 0; i < prompts; ++i) {
                std::vector<Token> prompt(small_prompt);
                task.make_prompt(Split::train, seeds.back(), static_cast<std::uint64_t>(i), prompt);
                prompt_tokens.insert(prompt_tokens.end(), prompt.begin(), prompt.end());
            }
            for (int b = 0; b < prompts * copies; ++b) {
                ids.push_back(static_cast<std::uint64_t>(b));
            }
        }
    }
    GenerationRequest request(bool greedy = false) const {
        return {prompts, copies, prompt_tokens, seeds, ids, greedy};
    }
};

template <typename P>
Weights<P> test_policy(Backend<P>& backend, int replicas, double sharpness = 1.0) {
    Weights<P> weights(backend, small_shape, replicas);
    std::vector<typename P::Real> numbers;
    for (int s = 0; s < replicas; ++s) {
        auto one = test_weights<typename P::Real>(small_shape, static_cast<std::uint64_t>(s) + 1);
        for (std::size_t i = places_of(small_shape).head; i < one.size(); ++i) {
            one[i] *= static_cast<typename P::Real>(sharpness);
        }
        numbers.insert(numbers.end(), one.begin(), one.end());
    }
    weights.upload(numbers);
    return weights;
}

template <typename P>
Generator<P> small_generator(Backend<P>& backend) {
    return Generator<P>(backend, small_shape, small_prompt, small_sequence - small_prompt);
}

/// Log-probabilities [sequences][sequence_tokens - 1] of all tokens after the first by a forward pass over whole
/// sequences.
template <typename P>
std::vector<typename P::Real> scored(Backend<P>& backend, const Weights<P>& weights, const std::vector<Token>& tokens,
                                     int sequence_tokens = small_sequence) {
    const ModelShape& shape = weights.shape();
    const int sequences = static_cast<int>(tokens.size()) / sequence_tokens;
    const Extent extent{1, sequences, sequence_tokens - 1};
    const auto row = static_cast<std::size_t>(sequence_tokens);
    Transformer<P> transformer(backend, shape);
    auto workspace = Workspace<P>::for_training(backend, shape, extent);
    BackendArray<P, Token> uploaded(backend, tokens.size());
    uploaded.upload(tokens);
    Activations<P>& a = workspace.activations();
    const PassInput<P> input{extent, uploaded.data(), row, weights.reals(), weights.operands(), weights.parameters()};
    transformer.forward(input, a);
    backend.run(Classifier<P>{.extent = extent,
                              .vocabulary = shape.vocabulary,
                              .logits = a.logits,
                              .targets = input.tokens + 1,
                              .target_stride = row,
                              .log_probability = a.log_probability});
    std::vector<typename P::Real> result(static_cast<std::size_t>(extent.rows()));
    backend.download(result.data(), a.log_probability, result.size() * sizeof(typename P::Real));
    return result;
}

/// The largest difference between log-probabilities of answers at generation and in a pass over whole sequences.
template <typename P>
double largest_difference(Backend<P>& backend, const Wanted& wanted) {
    const Weights<P> weights = test_policy(backend, 1);
    auto generator = small_generator(backend);
    const auto generated = generator.generate(weights, wanted.request());
    const auto whole = scored(backend, weights, generated.tokens);
    double largest = 0.0;
    for (std::size_t b = 0; b < generated.answer_tokens.size(); ++b) {
        for (std::size_t t = 0; t < static_cast<std::size_t>(generated.answer_tokens[b]); ++t) {
            const double difference =
                static_cast<double>(generated.log_probability[b * (small_sequence - small_prompt) + t]) -
                static_cast<double>(whole[b * (small_sequence - 1) + small_prompt - 1 + t]);
            largest = std::max(largest, std::abs(difference));
        }
    }
    return largest;
}

}  // namespace

TEST_CASE("decoding with caches finds what a pass over whole sequences finds") {
    CHECK(largest_difference(*make_reference_backend(1), Wanted(1, 5, 3)) < 1e-13);
    CHECK(largest_difference(*make_cpu_backend(1), Wanted(1, 5, 3)) < 1e-5);
    CHECK(largest_difference(*make_cpu_backend(1), Wanted(1, 9, 9)) < 1e-5);
}

TEST_CASE("log-probabilities stored at generation are those of training's forward pass, at the shape of sort8") {
    // What "ratios are exactly 1 at staleness 0" cannot show, as an update takes its own forward pass there.
    LearnerSettings settings;  // the defaults: sort8, width 32, 2 layers
    settings.warm_start.updates = 50;
    const Task task(settings.task);
    const ModelShape shape = shape_of(settings.model, task);
    REQUIRE(shape.width == 32);
    REQUIRE(shape.layers == 2);
    for (const InstructionSet set : available_instruction_sets()) {
        CAPTURE(name_of(set));
        const auto backend = make_cpu_backend(1, set);
        const std::vector<std::uint64_t> seeds{1};
        TaskLearner<Float32> learner(*backend, settings, seeds, warm_start(*backend, settings).weights);
        const std::vector<TaskRollout> rollouts = learner.generate_next(learner.policy(), 8, 8);
        std::vector<Token> tokens;
        for (const TaskRollout& rollout : rollouts) {
            tokens.insert(tokens.end(), rollout.tokens.begin(), rollout.tokens.end());
        }
        const auto row = static_cast<int>(rollouts.front().tokens.size());
        const std::vector<float> whole = scored(*backend, learner.policy(), tokens, row);
        double largest = 0.0;
        int answer_tokens = 0;
        for (std::size_t b = 0; b < rollouts.size(); ++b) {
            const std::size_t first_answer_row =
                b * static_cast<std::size_t>(row - 1) + static_cast<std::size_t>(task.prompt_tokens()) - 1;
            for (std::size_t t = 0; t < static_cast<std::size_t>(rollouts[b].answer_tokens[0]); ++t) {
                const auto stored = static_cast<double>(rollouts[b].log_probability[t]);
                largest = std::max(largest, std::abs(stored - static_cast<double>(whole[first_answer_row + t])));
                ++answer_tokens;
            }
        }
        MESSAGE(name_of(set) << ": " << largest << " among " << answer_tokens << " tokens");
        CHECK(answer_tokens > 300);
        CHECK(largest < 1e-5);
    }
}

TEST_CASE("frequencies of sampled tokens are their probabilities") {
    const auto backend = make_reference_backend(1);
    const Weights<Float64> weights = test_policy(*backend, 1, 3.0);
    auto generator = small_generator(*backend);
    const Wanted wanted(1, 1, 4000);
    const auto generated = generator.generate(weights, wanted.request());
    std::vector<double> count(20, 0.0);
    std::vector<double> probability(20, 0.0);
    for (std::size_t b = 0; b < 4000; ++b) {
        const auto token = static_cast<std::size_t>(generated.tokens[b * small_sequence + small_prompt]);
        count[token] += 1.0;
        probability[token] = std::exp(generated.log_probability[b * (small_sequence - small_prompt)]);
    }
    double chi_square = 0.0;
    int kinds = 0;
    for (std::size_t v = 0; v < 20; ++v) {
        if (probability[v] * 4000.0 > 5.0) {
            chi_square += std::pow(count[v] - 4000.0 * probability[v], 2) / (4000.0 * probability[v]);
            ++kinds;
        }
    }
    CHECK(kinds > 5);
    CHECK(chi_square < kinds + 4.0 * std::sqrt(2.0 * kinds));  // four standard deviations
}

TEST_CASE("what a sequence gets does not depend on what is generated beside it") {
    const auto backend = make_reference_backend(2);
    const Weights<Float64> weights = test_policy(*backend, 1);
    auto generator = small_generator(*backend);
    const Wanted all(1, 40, 8);  // more than one task
    const auto together = generator.generate(weights, all.request());
    Wanted one(1, 1, 8);
    const std::size_t prompt = 33;
    one.prompt_tokens.assign(all.prompt_tokens.begin() + prompt * small_prompt,
                             all.prompt_tokens.begin() + (prompt + 1) * small_prompt);
    std::iota(one.ids.begin(), one.ids.end(), prompt * 8);
    const auto alone = generator.generate(weights, one.request());
    CHECK(std::equal(alone.tokens.begin(), alone.tokens.end(), together.tokens.begin() + prompt * 8 * small_sequence));
    CHECK(std::equal(alone.log_probability.begin(), alone.log_probability.end(),
                     together.log_probability.begin() + prompt * 8 * (small_sequence - small_prompt)));
}

TEST_CASE("replicas generate together what each generates alone") {
    const auto backend = make_cpu_backend(1);
    auto generator = small_generator(*backend);
    const Weights<Float32> both = test_policy(*backend, 2);
    const Wanted wanted(2, 4, 4);
    const auto together = generator.generate(both, wanted.request());

    Weights<Float32> second(*backend, small_shape, 1);
    second.upload(test_weights<float>(small_shape, 2));
    Wanted alone(1, 4, 4);
    alone.prompt_tokens.assign(wanted.prompt_tokens.begin() + 16, wanted.prompt_tokens.end());
    alone.seeds = {2};
    const auto result = generator.generate(second, alone.request());
    CHECK(std::equal(result.tokens.begin(), result.tokens.end(), together.tokens.begin() + 16 * small_sequence));
    CHECK(std::equal(result.log_probability.begin(), result.log_probability.end(),
                     together.log_probability.begin() + 16 * (small_sequence - small_prompt)));
}

TEST_CASE("an answer ends with its end token, and nothing but padding follows") {
    const auto backend = make_reference_backend(1);
    const Weights<Float64> weights = test_policy(*backend, 1);
    auto generator = small_generator(*backend);
    const auto generated = generator.generate(weights, Wanted(1, 20, 20).request());
    int ended_early = 0;
    for (std::size_t b = 0; b < 400; ++b) {
        const auto answer =
            std::span(generated.tokens).subspan(b * small_sequence + small_prompt, small_sequence - small_prompt);
        const auto length = static_cast<std::size_t>(generated.answer_tokens[b]);
        CHECK(std::ranges::find(answer.first(length - 1), alphabet::end_of_answer) == answer.begin() + length - 1);
        if (length < answer.size()) {
            ++ended_early;
            CHECK(answer[length - 1] == alphabet::end_of_answer);
            CHECK(std::ranges::all_of(answer.subspan(length), [](Token t) { return t == alphabet::pad; }));
        }
    }
    CHECK(ended_early > 20);
}

TEST_CASE("greedy answers are the most probable tokens, the same in all copies") {
    const auto backend = make_reference_backend(1);
    const Weights<Float64> weights = test_policy(*backend, 1);
    auto generator = small_generator(*backend);
    const auto greedy = generator.generate(weights, Wanted(1, 3, 2).request(true));
    const auto sampled = generator.generate(weights, Wanted(1, 3, 200).request());
    for (std::size_t prompt = 0; prompt < 3; ++prompt) {
        const double best = greedy.log_probability[prompt * 2 * 4];
        CHECK(greedy.tokens[prompt * 16 + small_prompt] == greedy.tokens[prompt * 16 + 8 + small_prompt]);
        for (std::size_t b = 0; b < 200; ++b) {
            CHECK(sampled.log_probability[(prompt * 200 + b) * 4] <= best);
        }
    }
}

TEST_CASE("prompt and answer must fit the context") {
    const auto backend = make_reference_backend(1);
    CHECK_THROWS_WITH_AS(Generator<Float64>(*backend, small_shape, 6, 4),
                         "A prompt of 6 tokens and an answer of 4 do not fit a context of 9.", std::invalid_argument);
}
