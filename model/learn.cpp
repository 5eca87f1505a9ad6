#include "model/learn.h"

#include <bit>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/checkpoint.h"
#include "model/task_learner.h"
#include "model/warm_start.h"

namespace millrace {

namespace {

void require_sensible(const LearnSettings& settings) {
    const auto require = [](bool holds, const std::string& sentence) {
        if (!holds) {
            throw std::invalid_argument(sentence);
        }
    };
    require(settings.updates >= 0, "The number of updates must not be negative.");
    require(settings.group_size >= 1, "A group needs at least one rollout.");
    require(settings.batch >= settings.group_size && settings.batch % settings.group_size == 0,
            "A batch of " + std::to_string(settings.batch) + " rollouts is not made of whole groups of " +
                std::to_string(settings.group_size) + ".");
    require(!settings.seeds.empty(), "At least one seed is needed.");
    require(settings.learner.evaluation.every_updates >= 1, "The updates between evaluations must be at least 1.");
}

/// Of everything that decides what an update does; how long the run is and how it is evaluated does not matter.
std::uint64_t training_hash(const LearnSettings& settings, std::uint64_t theta_0_hash) {
    const ObjectiveSettings& objective = settings.learner.objective;
    const OptimizerSettings& optimizer = settings.learner.optimizer;
    const auto bits = [](double number) { return std::bit_cast<std::uint64_t>(number); };
    std::vector<std::uint64_t> words{theta_0_hash,
                                     static_cast<std::uint64_t>(objective.algorithm),
                                     static_cast<std::uint64_t>(objective.ratio),
                                     bits(objective.clip_low),
                                     bits(objective.clip_high),
                                     bits(objective.shift),
                                     bits(optimizer.learning_rate),
                                     bits(optimizer.beta1),
                                     bits(optimizer.beta2),
                                     bits(optimizer.epsilon),
                                     bits(optimizer.weight_decay),
                                     bits(optimizer.max_gradient_norm),
                                     static_cast<std::uint64_t>(optimizer.warmup_updates),
                                     static_cast<std::uint64_t>(settings.batch),
                                     static_cast<std::uint64_t>(settings.group_size)};
    words.insert(words.end(), settings.seeds.begin(), settings.seeds.end());
    return content_hash<std::uint64_t>(words);
}

void require_updates_left(const LearnSettings& settings, const LearnerCounters& made) {
    if (made.updates > settings.updates) {
        throw std::runtime_error("The checkpoint " + *settings.resume + " has made " + std::to_string(made.updates) +
                                 " updates, more than the " + std::to_string(settings.updates) +
                                 " in all that are wanted; horizon.updates must be at least " +
                                 std::to_string(made.updates) + " to resume it.");
    }
}

template <typename Real>
void require_same_run(const LearnSettings& settings, const Checkpoint<Real>& checkpoint, std::uint64_t theta_0_hash,
                      std::uint64_t settings_hash) {
    require_theta_0(checkpoint, theta_0_hash, *settings.resume);
    if (checkpoint.settings_hash != settings_hash) {
        throw std::runtime_error("The checkpoint " + *settings.resume +
                                 " was made from this theta_0, but with other seeds, another batch or group size, or "
                                 "other settings of the objective or the optimizer.");
    }
}

/// What the updates since the last report saw, by replica.
struct Since {
    std::vector<MeanStatistics> statistics;
    std::vector<double> reward;  ///< sums of the updates' means

    explicit Since(std::size_t replicas) : statistics(replicas), reward(replicas, 0.0) {}
};

void note(Since& since, const std::vector<UpdateStatistics>& seen, const std::vector<TaskRollout>& rollouts) {
    for (std::size_t s = 0; s < seen.size(); ++s) {
        since.statistics[s].add(seen[s]);
        double reward = 0.0;
        for (const TaskRollout& rollout : rollouts) {
            reward += rollout.reward[s];
        }
        since.reward[s] += reward / static_cast<double>(rollouts.size());
    }
}

template <typename P>
LearnReport report_on(TaskLearner<P>& learner, const LearnSettings& settings, const Since& since) {
    LearnReport report;
    report.update = learner.version();
    const std::vector<Evaluation> evaluations = learner.evaluate(learner.policy());
    for (std::size_t s = 0; s < evaluations.size(); ++s) {
        LearnReplicaReport replica;
        replica.seed = settings.seeds[s];
        replica.evaluation = evaluations[s];
        replica.mean = since.statistics[s].mean();
        if (since.statistics[s].updates() > 0) {
            replica.reward = since.reward[s] / static_cast<double>(since.statistics[s].updates());
        }
        replica.generated_tokens = learner.generated_tokens()[s];
        replica.trained_tokens = learner.trained_tokens()[s];
        report.replicas.push_back(replica);
    }
    return report;
}

}  // namespace

template <typename P>
LearnResult learn(Backend<P>& backend, const LearnSettings& settings, const LearnEvents& events) {
    using Real = typename P::Real;
    require_sensible(settings);

    std::optional<Checkpoint<Real>> checkpoint;
    if (settings.resume) {
        checkpoint = read_checkpoint<Real>(*settings.resume);
        require_updates_left(settings, checkpoint->counters);
    }
    const WarmStart<Real> theta_0 = warm_start(backend, settings.learner, events.stop_warm_start);
    TaskLearner<P> learner(backend, settings.learner, settings.seeds, theta_0.weights);
    const std::uint64_t settings_hash = training_hash(settings, theta_0.hash);
    if (checkpoint) {
        require_same_run(settings, *checkpoint, theta_0.hash, settings_hash);
        learner.restore(*checkpoint);
        checkpoint.reset();
    }
    if (events.started) {
        events.started({.theta_0_hash = hash_text(theta_0.hash),
                        .parameters = parameter_count(learner.policy().shape()),
                        .supervised_updates = theta_0.supervised_updates,
                        .update = learner.version()});
    }

    const auto save = [&] {
        if (settings.checkpoint) {
            Checkpoint<Real> state = learner.save();
            state.settings_hash = settings_hash;
            write_checkpoint(*settings.checkpoint, state);
        }
    };
    const auto stop_wanted = [&] { return events.stop != nullptr && events.stop->load(); };
    const auto evaluate_now = [&](const Since& since) {
        if (events.evaluated) {
            events.evaluated(report_on(learner, settings, since));
        }
    };

    Since since(settings.seeds.size());
    if (learner.version() == 0) {
        evaluate_now(since);
    }
    std::vector<const TaskRollout*> batch;
    while (learner.version() < settings.updates && !stop_wanted()) {
        const std::vector<TaskRollout> rollouts =
            learner.generate_next(learner.policy(), static_cast<int>(settings.batch / settings.group_size),
                                  static_cast<int>(settings.group_size));
        batch.clear();
        for (const TaskRollout& rollout : rollouts) {
            batch.push_back(&rollout);
        }
        note(since, learner.update(batch), rollouts);
        const bool last = learner.version() == settings.updates;
        if (last || learner.version() % settings.learner.evaluation.every_updates == 0) {
            evaluate_now(since);
            since = Since(settings.seeds.size());
            save();
        }
    }
    if (stop_wanted()) {
        save();
    }
    return {.theta_0_hash = hash_text(theta_0.hash),
            .final_hash = hash_text(content_hash<Real>(learner.policy().download())),
            .updates = learner.version(),
            .stopped = learner.version() < settings.updates};
}

template LearnResult learn(Backend<Float32>&, const LearnSettings&, const LearnEvents&);
template LearnResult learn(Backend<Float64>&, const LearnSettings&, const LearnEvents&);
template LearnResult learn(Backend<Mixed>&, const LearnSettings&, const LearnEvents&);

}  // namespace millrace
