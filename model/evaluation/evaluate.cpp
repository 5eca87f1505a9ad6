#include "model/evaluation/evaluate.h"

#include <algorithm>
#include <span>

#include "model/evaluation/pass_at_k.h"

namespace millrace {

namespace {

/// The first `count` held-out prompts, once for each replica.
std::vector<Token> held_out_prompts(const Task& task, int count, int replicas) {
    const auto length = static_cast<std::size_t>(task.prompt_tokens());
    std::vector<Token> prompts(static_cast<std::size_t>(count) * length);
    for (int i = 0; i < count; ++i) {
        task.make_prompt(Split::held_out, evaluation_seed, static_cast<std::uint64_t>(i),
                         std::span(prompts).subspan(static_cast<std::size_t>(i) * length, length));
    }
    std::vector<Token> all;
    for (int replica = 0; replica < replicas; ++replica) {
        all.insert(all.end(), prompts.begin(), prompts.end());
    }
    return all;
}

/// Answers to the first `prompts` held-out prompts, and which of them are correct.
template <typename P>
struct Answers {
    GenerationResult<P> generated;
    std::vector<bool> correct;  ///< [S][prompts * copies]
};

template <typename P>
Answers<P> answer(Generator<P>& generator, const Task& task, const Weights<P>& weights, int prompts, int copies,
                  bool greedy) {
    const auto replicas = static_cast<std::size_t>(weights.replicas());
    const std::size_t sequences = static_cast<std::size_t>(prompts) * static_cast<std::size_t>(copies);
    const std::vector<Token> prompt_tokens = held_out_prompts(task, prompts, weights.replicas());
    const std::vector<std::uint64_t> seeds(replicas, evaluation_seed);
    std::vector<std::uint64_t> ids(replicas * sequences);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        ids[i] = i % sequences;
    }
    Answers<P> answers;
    answers.generated = generator.generate(weights, {.prompts = prompts,
                                                     .copies = copies,
                                                     .prompt_tokens = prompt_tokens,
                                                     .seeds = seeds,
                                                     .sequence_ids = ids,
                                                     .greedy = greedy});
    const auto row = static_cast<std::size_t>(generator.sequence_tokens());
    const auto prompt_length = static_cast<std::size_t>(generator.prompt_tokens());
    answers.correct.resize(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto tokens = std::span<const Token>(answers.generated.tokens).subspan(i * row, row);
        answers.correct[i] = task.is_correct(tokens.first(prompt_length), tokens.subspan(prompt_length));
    }
    return answers;
}

/// Mean over prompts of pass@k, given each prompt's number of correct samples.
double mean_pass_at(std::int64_t k, std::int64_t samples, std::span<const std::int64_t> correct) {
    double sum = 0.0;
    for (const std::int64_t count : correct) {
        sum += pass_at_k(samples, count, k);
    }
    return sum / static_cast<double>(correct.size());
}

}  // namespace

template <typename P>
std::vector<Evaluation> evaluate(Generator<P>& generator, const Task& task, const EvaluationSettings& settings,
                                 const Weights<P>& weights) {
    const auto replicas = static_cast<std::size_t>(weights.replicas());
    const auto prompts = static_cast<std::size_t>(settings.sampled_prompts);
    const auto samples = static_cast<std::size_t>(settings.samples);
    const auto greedy_prompts = static_cast<std::size_t>(settings.greedy_prompts);
    std::vector<Evaluation> result(replicas);

    if (greedy_prompts > 0) {
        const auto greedy = answer(generator, task, weights, static_cast<int>(greedy_prompts), 1, true);
        for (std::size_t s = 0; s < replicas; ++s) {
            const auto begin = greedy.correct.begin() + static_cast<std::ptrdiff_t>(s * greedy_prompts);
            const auto right = std::count(begin, begin + static_cast<std::ptrdiff_t>(greedy_prompts), true);
            result[s].greedy = static_cast<double>(right) / static_cast<double>(greedy_prompts);
        }
    }

    if (prompts * samples == 0) {
        return result;
    }
    const auto sampled = answer(generator, task, weights, static_cast<int>(prompts), static_cast<int>(samples), false);
    const auto room = static_cast<std::size_t>(generator.answer_room());
    for (std::size_t s = 0; s < replicas; ++s) {
        std::vector<std::int64_t> correct(prompts, 0);
        double surprise = 0.0;
        double tokens = 0.0;
        for (std::size_t i = 0; i < prompts * samples; ++i) {
            const std::size_t sequence = s * prompts * samples + i;
            const auto length = static_cast<std::size_t>(sampled.generated.answer_tokens[sequence]);
            correct[i / samples] += sampled.correct[sequence] ? 1 : 0;
            tokens += static_cast<double>(length);
            for (std::size_t t = 0; t < length; ++t) {
                surprise -= static_cast<double>(sampled.generated.log_probability[sequence * room + t]);
            }
        }
        const std::int64_t n = settings.samples;
        result[s].pass_at_1 = mean_pass_at(1, n, correct);
        if (n >= 4) {
            result[s].pass_at_4 = mean_pass_at(4, n, correct);
        }
        if (n >= 16) {
            result[s].pass_at_16 = mean_pass_at(16, n, correct);
        }
        result[s].entropy = surprise / tokens;
        result[s].answer_tokens = tokens / static_cast<double>(prompts * samples);
    }
    return result;
}

template std::vector<Evaluation> evaluate(Generator<Float32>&, const Task&, const EvaluationSettings&,
                                          const Weights<Float32>&);
template std::vector<Evaluation> evaluate(Generator<Float64>&, const Task&, const EvaluationSettings&,
                                          const Weights<Float64>&);
template std::vector<Evaluation> evaluate(Generator<Mixed>&, const Task&, const EvaluationSettings&,
                                          const Weights<Mixed>&);

}  // namespace millrace
