// What the tests of a learner inside a pipeline share: a task of milliseconds, a watcher between pipeline and learner,
// and a second learner that writes every rollout at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/backends.h"
#include "model/pipeline_learner.h"
#include "model/warm_start.h"
#include "sim/pipeline/pipeline.h"
#include "tests/model/small_model.h"

namespace millrace::test {

inline constexpr int group_size = 4;

inline std::vector<std::uint64_t> ids_from(std::uint64_t first, std::size_t count) {
    std::vector<std::uint64_t> ids(count);
    std::iota(ids.begin(), ids.end(), first);
    return ids;
}

inline LearnerSettings tiny_settings() {
    LearnerSettings settings = small_settings();
    settings.model = {.layers = 1, .width = 16, .heads = 2, .mlp_width = 32, .context = {}};
    settings.warm_start.updates = 150;
    settings.optimizer.learning_rate = 3e-3;
    settings.optimizer.warmup_updates = 0;
    settings.evaluation = {.sampled_prompts = 4, .samples = 16, .greedy_prompts = 8};
    return settings;
}

/// A policy that answers some prompts and not others.
inline const std::vector<float>& tiny_theta_0() {
    static const std::vector<float> weights = warm_start(*make_cpu_backend(1), tiny_settings()).weights;
    return weights;
}

template <typename P>
PipelineLearner<P> tiny_learner(Backend<P>& backend, const PipelineConfig& config, std::int64_t updates,
                                const std::vector<std::uint64_t>& seeds = {1},
                                const std::atomic<bool>* stop = nullptr) {
    PipelineLearnerSettings settings;
    settings.learner = tiny_settings();
    settings.group_size = static_cast<int>(config.groups.size);
    settings.rollouts_switch_version = config.weight_sync.in_flight == InFlight::in_place;
    settings.evaluate_every_units = 10.0;
    settings.updates = updates;
    settings.stop = stop;
    const std::vector<typename P::Real> theta_0(tiny_theta_0().begin(), tiny_theta_0().end());
    return PipelineLearner<P>(backend, settings, seeds, theta_0);
}

template <typename P>
TaskLearner<P> tiny_task_learner(Backend<P>& backend) {
    const std::vector<typename P::Real> theta_0(tiny_theta_0().begin(), tiny_theta_0().end());
    const std::vector<std::uint64_t> seeds{1};
    return TaskLearner<P>(backend, tiny_settings(), seeds, theta_0);
}

template <typename P>
std::uint64_t weights_hash(const TaskLearner<P>& learner) {
    return content_hash<typename P::Real>(learner.policy().download());
}

/// Workers, trainers and a store in the proportions of a real pipeline, in which an update takes about 4 s.
inline PipelineConfig tiny_pipeline() {
    PipelineConfig config;
    config.workers.count = 3;
    config.workers.slots = 6;
    config.workers.service = FirstOrderService{Distribution::lognormal(1.0, 0.7)};
    config.groups.size = group_size;
    config.trainers.batch = 12;
    config.trainers.service = FixedTrainerService{Distribution::constant(4.0)};
    config.store = ReplayBufferConfig{.capacity = 32};
    return config;
}

inline PipelineConfig dropping_pipeline() {
    PipelineConfig config = tiny_pipeline();
    config.workers.count = 7;
    // No multiple of the group size: what is dropped is the head of a group whose tail is still used.
    config.store = TransferQueueConfig{.capacity = 18, .order = QueueOrder::fifo, .overflow = Overflow::drop_oldest};
    config.trainers.batch = 10;
    return config;
}

inline PipelineConfig in_place_pipeline() {
    PipelineConfig config = tiny_pipeline();
    config.workers.service = FirstOrderService{Distribution::lognormal(2.5, 0.7)};  // a rollout spans updates
    config.weight_sync.in_flight = InFlight::in_place;
    config.weight_sync.transfer_s = Distribution::uniform(0.1, 3.0);
    return config;
}

/// Stands between a pipeline and a PipelineLearner and notes what goes by.
template <typename P>
class Watched final : public Learner {
   public:
    explicit Watched(PipelineLearner<P>& learner, bool rollouts_switch_version = false)
        : learner_(learner), rollouts_switch_version_(rollouts_switch_version) {}

    void begin(std::uint64_t id, std::int32_t version) override {
        learner_.begin(id, version);
        unwritten_[id].versions.insert(version);
        ++living;
        check_memory();
    }
    void switch_version(std::uint64_t id, std::int32_t version, double written) override {
        learner_.switch_version(id, version, written);
        unwritten_[id].versions.insert(version);
        check_memory();
    }
    void finish(std::uint64_t id) override {
        learner_.finish(id);
        if (const auto rollout = unwritten_.find(id); rollout != unwritten_.end()) {
            rollout->second.finished = true;
        }
    }
    bool correct(std::uint64_t id) override {
        const bool verdict = learner_.correct(id);
        const auto& tokens = learner_.text(id)->tokens;
        const auto prompt = static_cast<std::size_t>(learner_.learner().task().prompt_tokens());
        const bool by_task =
            learner_.learner().task().is_correct(std::span(tokens).first(prompt), std::span(tokens).subspan(prompt));
        wrong_verdicts += verdict == by_task ? 0 : 1;
        ++(verdict ? right_answers : wrong_answers);
        return verdict;
    }
    void update(std::int32_t version, std::span<const std::uint64_t> batch) override {
        learner_.update(version, batch);
        batches.emplace_back(batch.begin(), batch.end());
        rewards.emplace_back();
        for (const std::uint64_t id : batch) {
            rewards.back().push_back(learner_.text(id)->reward[0]);
            of_several += learner_.text(id)->policy_version == written_by_several ? 1 : 0;
        }
        std::erase_if(unwritten_,
                      [&](const auto& rollout) { return !rollouts_switch_version_ || rollout.second.finished; });
        check_memory();
    }
    bool updated(std::int32_t version, const ComputeSpent& spent) override { return learner_.updated(version, spent); }
    void forget(std::uint64_t id) override {
        learner_.forget(id);
        --living;
        check_memory();
    }
    void keep(std::span<const std::int32_t> versions) override {
        learner_.keep(versions);
        kept_.assign(versions.begin(), versions.end());
        check_memory();
    }

    std::vector<std::vector<std::uint64_t>> batches;  ///< of the updates
    std::vector<std::vector<double>> rewards;         ///< of their rollouts
    std::int64_t of_several = 0;                      ///< samples that more than one version has written
    std::int64_t right_answers = 0;
    std::int64_t wrong_answers = 0;
    std::int64_t wrong_verdicts = 0;  ///< that are not the task's
    std::size_t living = 0;           ///< rollouts begun and not forgotten
    std::size_t most_versions = 0;    ///< held at any time
    int too_many_versions = 0;        ///< times at which a version was held that nobody needed
    int other_rollouts = 0;           ///< times at which other rollouts were held than are alive

   private:
    struct Unwritten {
        std::set<std::int32_t> versions;
        bool finished = false;
    };

    /// Needed are the versions that workers have or are about to get, and those of rollouts no update has asked for
    /// yet.
    void check_memory() {
        std::set<std::int32_t> needed(kept_.begin(), kept_.end());
        for (const auto& [id, rollout] : unwritten_) {
            needed.insert(rollout.versions.begin(), rollout.versions.end());
        }
        most_versions = std::max(most_versions, learner_.versions_held());
        too_many_versions += learner_.versions_held() > needed.size() ? 1 : 0;
        other_rollouts += learner_.rollouts_held() != living ? 1 : 0;
    }

    PipelineLearner<P>& learner_;
    bool rollouts_switch_version_;
    std::vector<std::int32_t> kept_;
    std::map<std::uint64_t, Unwritten> unwritten_;
};

/// Writes each rollout alone and at the very moment when it begins or switches, keeps every version for ever, and so
/// needs none of the bookkeeping of a PipelineLearner.
class EagerLearner final : public Learner {
   public:
    explicit EagerLearner(Backend<Float64>& backend) : learner_(tiny_task_learner(backend)) {}

    void begin(std::uint64_t id, std::int32_t version) override { write(id, version); }
    void switch_version(std::uint64_t id, std::int32_t version, double written) override {
        const auto room = static_cast<double>(learner_.task().answer_tokens());
        const int first_token = static_cast<int>(written * room);
        if (first_token == 0) {
            write(id, version);
            return;
        }
        const std::vector<std::uint64_t> ids{id};
        const std::vector<TaskRollout*> texts{&texts_.at(id)};
        learner_.rewrite(*policies_.at(version), ids, texts, first_token);
    }
    void finish(std::uint64_t id) override {
        const std::uint64_t group = id / group_size;
        if (++finished_[group] < group_size) {
            return;
        }
        std::vector<TaskRollout*> members;
        for (std::uint64_t member = group * group_size; member < (group + 1) * group_size; ++member) {
            members.push_back(&texts_.at(member));
        }
        learner_.set_advantages(members);
    }
    bool correct(std::uint64_t id) override { return texts_.at(id).reward[0] == 1.0; }
    void update(std::int32_t /*version*/, std::span<const std::uint64_t> batch) override {
        std::vector<const TaskRollout*> texts;
        rewards.emplace_back();
        for (const std::uint64_t id : batch) {
            texts.push_back(&texts_.at(id));
            rewards.back().push_back(texts_.at(id).reward[0]);
        }
        learner_.update(texts);
    }
    bool updated(std::int32_t /*version*/, const ComputeSpent& /*spent*/) override { return true; }
    void forget(std::uint64_t id) override { texts_.erase(id); }
    void keep(std::span<const std::int32_t> versions) override {
        for (const std::int32_t version : versions) {
            if (!policies_.contains(version)) {
                policies_[version] = learner_.snapshot();
            }
        }
    }

    const TaskLearner<Float64>& learner() const { return learner_; }
    std::vector<std::vector<double>> rewards;

   private:
    void write(std::uint64_t id, std::int32_t version) {
        const std::vector<std::uint64_t> ids{id};
        texts_[id] = learner_.generate(*policies_.at(version), ids, group_size)[0];
    }

    TaskLearner<Float64> learner_;
    std::map<std::int32_t, std::shared_ptr<const Weights<Float64>>> policies_;
    std::unordered_map<std::uint64_t, TaskRollout> texts_;
    std::unordered_map<std::uint64_t, int> finished_;
};

}  // namespace millrace::test
