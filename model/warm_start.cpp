#include "model/warm_start.h"

#include <cmath>
#include <span>
#include <stdexcept>

#include "kernels/random.h"
#include "model/checkpoint.h"
#include "model/training.h"
#include "model/weights.h"

namespace millrace {

namespace {

/// Supervised prompts are training prompts under a key of their own: the seeds of reinforcement learning, small numbers
/// chosen by people, never meet them again.
std::uint64_t supervised_key(std::uint64_t seed) {
    const Philox4x32 bits = learner_bits(seed, LearnerPurpose::supervised_prompt, 0);
    return (std::uint64_t{bits.word[0]} << 32) | bits.word[1];
}

template <typename Real>
std::vector<Real> weights_of_checkpoint(const std::string& path, const ModelShape& shape, const TaskSettings& task) {
    Checkpoint<Real> checkpoint = read_checkpoint<Real>(path);
    if (checkpoint.shape != shape) {
        throw std::runtime_error("The checkpoint " + path + " holds a model of another shape: " +
                                 to_text(checkpoint.shape) + " instead of " + to_text(shape) + ".");
    }
    if (checkpoint.task.kind != task.kind || checkpoint.task.size != task.size) {
        throw std::runtime_error("The checkpoint " + path + " holds a model for another task.");
    }
    checkpoint.weights.resize(places_of(shape).size);
    return checkpoint.weights;
}

}  // namespace

TaskRollout supervised_example(const Task& task, std::uint64_t seed, std::uint64_t index, int replicas) {
    const auto prompt_tokens = static_cast<std::size_t>(task.prompt_tokens());
    const auto answer_room = static_cast<std::size_t>(task.answer_tokens());
    std::vector<Token> tokens(prompt_tokens + answer_room);
    const auto prompt = std::span(tokens).first(prompt_tokens);
    task.make_prompt(Split::train, supervised_key(seed), index, prompt);
    const std::int64_t length = task.write_solution(prompt, std::span(tokens).subspan(prompt_tokens));
    TaskRollout example;
    for (int replica = 0; replica < replicas; ++replica) {
        example.tokens.insert(example.tokens.end(), tokens.begin(), tokens.end());
        example.answer_tokens.push_back(static_cast<std::int32_t>(length));
    }
    return example;
}

template <typename P>
WarmStart<typename P::Real> warm_start(Backend<P>& backend, const LearnerSettings& settings,
                                       const std::atomic<bool>* stop) {
    using Real = typename P::Real;
    const WarmStartSettings& start = settings.warm_start;
    const Task task(settings.task);
    const ModelShape shape = shape_of(settings.model, task);
    WarmStart<Real> result;
    if (start.checkpoint) {
        result.weights = weights_of_checkpoint<Real>(*start.checkpoint, shape, settings.task);
    } else {
        const std::vector<double> initial = initial_weights(shape, start.seed);
        std::vector<Real> weights(initial.size());
        for (std::size_t i = 0; i < initial.size(); ++i) {
            weights[i] = static_cast<Real>(initial[i]);
        }
        Trainer<P> trainer(backend, shape, 1, static_cast<int>(task.prompt_tokens()),
                           static_cast<int>(task.prompt_tokens() + task.answer_tokens()));
        trainer.start(weights);
        const LearningRateSchedule schedule{
            .peak = start.optimizer.learning_rate,
            .warmup_updates = start.optimizer.warmup_updates,
            .updates = start.updates,
            .annealed_updates = std::llround(start.annealed_fraction * static_cast<double>(start.updates))};
        std::vector<TaskRollout> examples(static_cast<std::size_t>(start.batch));
        std::vector<const TaskRollout*> batch;
        for (const TaskRollout& example : examples) {
            batch.push_back(&example);
        }
        std::uint64_t next = 0;
        for (std::int64_t update = 1; update <= start.updates; ++update) {
            if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
                throw WarmStartStopped();
            }
            for (TaskRollout& example : examples) {
                example = supervised_example(task, start.seed, next++);
            }
            const auto seen = trainer.update_supervised(batch, start.optimizer, schedule.at(update));
            result.log_probability = seen.front().log_probability;
        }
        result.weights = trainer.weights().download();
        result.supervised_updates = start.updates;
    }
    result.hash = content_hash<Real>(result.weights);
    if (start.checkpoint_hash && *start.checkpoint_hash != hash_text(result.hash)) {
        throw std::runtime_error("The weights of theta_0 have the hash " + hash_text(result.hash) + ", not " +
                                 *start.checkpoint_hash + " as the settings say.");
    }
    return result;
}

template WarmStart<float> warm_start(Backend<Float32>&, const LearnerSettings&, const std::atomic<bool>*);
template WarmStart<double> warm_start(Backend<Float64>&, const LearnerSettings&, const std::atomic<bool>*);
template WarmStart<float> warm_start(Backend<Mixed>&, const LearnerSettings&, const std::atomic<bool>*);

}  // namespace millrace
