#include "model/pipeline_learner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace millrace {

template <typename P>
PipelineLearner<P>::PipelineLearner(Backend<P>& backend, const PipelineLearnerSettings& settings,
                                    std::span<const std::uint64_t> seeds, std::span<const Real> theta_0)
    : settings_(settings), learner_(backend, settings.learner, seeds, theta_0), since_(seeds.size()) {}

// ---- versions -------------------------------------------------------------------------------------------------------

template <typename P>
void PipelineLearner<P>::keep(std::span<const std::int32_t> versions) {
    if (is_known(Said::keep, {content_hash<std::int32_t>(versions)})) {
        return;
    }
    std::erase_if(versions_, [&](const auto& held) { return !std::ranges::binary_search(versions, held.first); });
    for (const std::int32_t version : versions) {
        if (versions_.contains(version)) {
            continue;
        }
        if (version != learner_.version()) {
            throw std::logic_error("The pipeline asks for a policy version that no longer exists.");
        }
        versions_[version] = learner_.snapshot();
    }
}

template <typename P>
std::size_t PipelineLearner<P>::versions_held() const {
    std::vector<const Weights<P>*> held;
    for (const auto& [version, policy] : versions_) {
        held.push_back(policy.get());
    }
    for (const std::uint64_t id : pending_) {
        for (const Segment& segment : rollouts_.at(id).segments) {
            held.push_back(segment.policy.get());
        }
    }
    std::ranges::sort(held);
    return static_cast<std::size_t>(std::ranges::unique(held).begin() - held.begin());
}

template <typename P>
const TaskRollout* PipelineLearner<P>::text(std::uint64_t id) const {
    const auto place = rollouts_.find(id);
    return place != rollouts_.end() && place->second.segments.empty() ? &place->second.text : nullptr;
}

// ---- rollouts -------------------------------------------------------------------------------------------------------

template <typename P>
void PipelineLearner<P>::begin(std::uint64_t id, std::int32_t version) {
    if (is_known(Said::begin, {id, static_cast<std::uint64_t>(version)})) {
        return;
    }
    Place& place = rollouts_[id];
    place.segments.push_back({versions_.at(version), 0});
    place.version_started = version;
    pending_.push_back(id);
    open_groups_.try_emplace(id / static_cast<std::uint64_t>(settings_.group_size));
}

template <typename P>
void PipelineLearner<P>::switch_version(std::uint64_t id, std::int32_t version, double written) {
    if (is_known(Said::switch_version,
                 {id, static_cast<std::uint64_t>(version), std::bit_cast<std::uint64_t>(written)})) {
        return;
    }
    // Lengths are the pipeline's, words are the task's: the share of the one is the share of the other.
    const auto room = static_cast<double>(learner_.task().answer_tokens());
    const int first_token = static_cast<int>(std::floor(written * room));
    std::vector<Segment>& segments = rollouts_.at(id).segments;
    if (!settings_.rollouts_switch_version || segments.empty()) {
        throw std::logic_error("A rollout that may have been written already is to switch the policy version.");
    }
    if (segments.back().first_token == first_token) {
        segments.back().policy = versions_.at(version);  // the one before has not written a token
    } else {
        segments.push_back({versions_.at(version), first_token});
    }
}

template <typename P>
void PipelineLearner<P>::finish(std::uint64_t id) {
    if (is_known(Said::finish, {id})) {
        return;
    }
    rollouts_.at(id).finished = true;
    ++written_;
}

template <typename P>
bool PipelineLearner<P>::correct(std::uint64_t id) {
    if (learner_.replicas() != 1) {
        throw std::logic_error("Replicas share a timeline, so what happens must not depend on their rewards.");
    }
    const auto number = static_cast<std::size_t>(verdicts_++);
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    if (is_known(Said::correct, {id})) {
        return number / 64 < verdict_bits_.size() && (verdict_bits_[number / 64] & bit) != 0;
    }
    const Place& place = rollouts_.at(id);
    if (!place.segments.empty()) {
        write_pending();
    }
    const bool verdict = place.text.reward[0] > 0.5;
    verdict_bits_.resize(number / 64 + 1);
    verdict_bits_.back() |= verdict ? bit : 0;
    return verdict;
}

template <typename P>
void PipelineLearner<P>::forget(std::uint64_t id) {
    if (is_known(Said::forget, {id})) {
        return;
    }
    const std::uint64_t group = id / static_cast<std::uint64_t>(settings_.group_size);
    if (open_groups_.contains(group)) {
        write_pending();  // the others of its group need its reward
    }
    rollouts_.erase(id);
}

template <typename P>
void PipelineLearner<P>::write_pending() {
    // Between rollouts, what is in flight is as good as written: no other version will have a part in it.
    const auto [rest, end] = std::ranges::stable_partition(
        pending_, [&](std::uint64_t id) { return settings_.rollouts_switch_version && !rollouts_.at(id).finished; });
    std::vector<std::uint64_t> ready(rest, end);
    pending_.erase(rest, end);
    std::ranges::sort(ready);

    for (std::size_t part = 0; !ready.empty(); ++part) {
        // In the order of versions and places, never of addresses.
        std::map<std::pair<std::int64_t, int>, std::pair<Policy, std::vector<std::uint64_t>>> tasks;
        std::vector<std::uint64_t> longer;
        for (const std::uint64_t id : ready) {
            Place& place = rollouts_.at(id);
            const Segment& segment = place.segments[part];
            auto& [policy, ids] = tasks[{segment.policy->version(), segment.first_token}];
            policy = segment.policy;
            ids.push_back(id);
            if (part + 1 < place.segments.size()) {
                longer.push_back(id);
            }
        }
        for (const auto& [key, task] : tasks) {
            write_from(task.first, key.second, task.second);
        }
        for (const std::uint64_t id : ready) {
            if (part + 1 == rollouts_.at(id).segments.size()) {
                note_written(id);
            }
        }
        ready = std::move(longer);
    }
}

template <typename P>
void PipelineLearner<P>::write_from(const Policy& policy, int first_token, std::vector<std::uint64_t> ids) {
    if (first_token > 0) {
        std::vector<TaskRollout*> texts;
        for (const std::uint64_t id : ids) {
            texts.push_back(&rollouts_.at(id).text);
        }
        learner_.rewrite(*policy, ids, texts, first_token);
        return;
    }
    // Whole groups share the work on their prompts, so the others go by themselves.
    const auto size = static_cast<std::uint64_t>(settings_.group_size);
    std::vector<std::uint64_t> whole;
    std::vector<std::uint64_t> parts;
    for (std::size_t first = 0, last = 0; first < ids.size(); first = last) {
        while (last < ids.size() && ids[last] / size == ids[first] / size) {
            ++last;
        }
        auto& destination = last - first == size ? whole : parts;
        destination.insert(destination.end(), ids.begin() + static_cast<std::ptrdiff_t>(first),
                           ids.begin() + static_cast<std::ptrdiff_t>(last));
    }
    for (const std::vector<std::uint64_t>& some : {whole, parts}) {
        if (some.empty()) {
            continue;
        }
        std::vector<TaskRollout> texts = learner_.generate(*policy, some, settings_.group_size);
        for (std::size_t i = 0; i < some.size(); ++i) {
            rollouts_.at(some[i]).text = std::move(texts[i]);
        }
    }
}

template <typename P>
void PipelineLearner<P>::note_written(std::uint64_t id) {
    rollouts_.at(id).segments.clear();
    const auto size = static_cast<std::uint64_t>(settings_.group_size);
    const auto open = open_groups_.find(id / size);
    if (++open->second.written < settings_.group_size) {
        return;
    }
    std::vector<TaskRollout*> group;
    for (std::uint64_t member = id / size * size; member < (id / size + 1) * size; ++member) {
        group.push_back(&rollouts_.at(member).text);
    }
    learner_.set_advantages(group);
    open_groups_.erase(open);
}

// ---- updates --------------------------------------------------------------------------------------------------------

template <typename P>
void PipelineLearner<P>::update(std::int32_t version, std::span<const std::uint64_t> batch) {
    if (is_known(Said::update, {static_cast<std::uint64_t>(version), content_hash<std::uint64_t>(batch)})) {
        return;
    }
    write_pending();
    std::vector<const TaskRollout*> texts;
    for (const std::uint64_t id : batch) {
        const Place& place = rollouts_.at(id);
        texts.push_back(&place.text);
        staleness_ += version - place.version_started;
    }
    samples_ += static_cast<std::int64_t>(batch.size());
    const std::vector<UpdateStatistics> seen = learner_.update(texts);
    for (std::size_t s = 0; s < seen.size(); ++s) {
        since_[s].add(seen[s]);
    }
}

template <typename P>
bool PipelineLearner<P>::updated(std::int32_t version, const ComputeSpent& spent) {
    const double units = units_of(spent);
    const bool known =
        is_known(Said::updated, {static_cast<std::uint64_t>(version), std::bit_cast<std::uint64_t>(units)});
    at_end_ = version == settings_.updates || (settings_.budget_units > 0.0 && units >= settings_.budget_units);
    const bool evaluated = known ? resumed(version) : units >= next_evaluation_units_ || at_end_;
    if (evaluated && !known) {
        evaluate(spent);
    }
    units_before_ = units;
    if (at_end_ && on_end) {
        on_end();
    }
    // While it only listens nothing is lost at any time.
    stopped_ = !at_end_ && (evaluated || known) && stop_wanted();
    return !at_end_ && !stopped_;
}

template <typename P>
double PipelineLearner<P>::units_of(const ComputeSpent& spent) const {
    return (spent.worker_active_gpu_s + spent.trainer_active_gpu_s) / settings_.unit_gpu_s;
}

template <typename P>
double PipelineLearner<P>::evaluation_after(double units) const {
    return (std::floor(units / settings_.evaluate_every_units) + 1.0) * settings_.evaluate_every_units;
}

template <typename P>
void PipelineLearner<P>::evaluate(const ComputeSpent& spent) {
    CurvePoint point;
    point.update = static_cast<std::int32_t>(learner_.version());
    point.units = units_of(spent);
    point.at_s = seconds(spent.at);
    point.active_gpu_s = spent.worker_active_gpu_s + spent.trainer_active_gpu_s;
    point.reserved_gpu_s = spent.reserved_gpu_s;
    if (samples_ > 0) {
        point.staleness = static_cast<double>(staleness_) / static_cast<double>(samples_);
        point.replay = static_cast<double>(samples_) / static_cast<double>(written_);
    }
    point.evaluation = learner_.evaluate(learner_.policy());
    for (MeanStatistics& since : since_) {
        point.statistics.push_back(since.mean());
        since = {};
    }
    next_evaluation_units_ = evaluation_after(point.units);
    curve_.push_back(std::move(point));
    if (on_evaluated) {
        on_evaluated(curve_.back());
    }
}

// ---- interrupted and resumed
// ------------------------------------------------------------------------------------------

template <typename P>
bool PipelineLearner<P>::is_known(Said said, std::initializer_list<std::uint64_t> words) {
    std::array<std::uint64_t, 5> all{timeline_, static_cast<std::uint64_t>(said)};
    std::ranges::copy(words, all.begin() + 2);
    timeline_ = content_hash(std::span<const std::uint64_t>(all));
    return resume_at_ > 0;
}

/// At an update of which the learner has only heard: whether it has caught up.
template <typename P>
bool PipelineLearner<P>::resumed(std::int32_t version) {
    if (version < resume_at_) {
        if (at_end_) {
            throw std::runtime_error("The checkpoint has made " + std::to_string(resume_at_) +
                                     " updates, but the run ends with " + std::to_string(version) + ".");
        }
        return false;
    }
    if (timeline_ != timeline_at_resume_) {
        throw std::runtime_error("The timeline of the first " + std::to_string(version) +
                                 " updates is not the one that the checkpoint was made on: another version of the "
                                 "program has made it.");
    }
    resume_at_ = 0;
    return true;
}

template <typename P>
PipelineCheckpoint<typename P::Real> PipelineLearner<P>::save() const {
    PipelineCheckpoint<Real> checkpoint;
    checkpoint.learner = learner_.save();

    std::map<std::int64_t, Policy> held;
    for (const auto& [version, policy] : versions_) {
        held[version] = policy;
        checkpoint.kept.push_back(version);
    }
    std::set<std::uint64_t> ids;  // in ascending order, never in that of the map
    for (const auto& [id, place] : rollouts_) {
        ids.insert(id);
    }
    for (const std::uint64_t id : ids) {
        const Place& place = rollouts_.at(id);
        auto& rollout = checkpoint.rollouts.emplace_back();
        rollout.id = id;
        rollout.version_started = place.version_started;
        rollout.finished = place.finished;
        rollout.text = place.text;
        for (const Segment& segment : place.segments) {
            held[segment.policy->version()] = segment.policy;
            rollout.segments.push_back({segment.policy->version(), segment.first_token});
        }
    }
    for (const auto& [version, policy] : held) {
        checkpoint.versions.push_back(
            {version, version == learner_.version() ? std::vector<Real>() : policy->download()});
    }
    checkpoint.pending = pending_;
    for (const auto& [group, open] : std::map(open_groups_.begin(), open_groups_.end())) {
        checkpoint.open_groups.push_back({group, open.written});
    }

    checkpoint.curve = curve_;
    checkpoint.units_before = units_before_;
    checkpoint.samples = samples_;
    checkpoint.staleness = staleness_;
    checkpoint.written = written_;
    checkpoint.timeline = timeline_;
    checkpoint.verdicts = verdicts_;
    checkpoint.verdict_bits = verdict_bits_;
    return checkpoint;
}

template <typename P>
void PipelineLearner<P>::resume(const PipelineCheckpoint<Real>& checkpoint) {
    learner_.restore(checkpoint.learner);
    std::map<std::int64_t, Policy> held;
    for (const auto& version : checkpoint.versions) {
        held[version.number] =
            version.weights.empty() ? learner_.snapshot() : learner_.policy_of(version.weights, version.number);
    }
    for (const std::int32_t version : checkpoint.kept) {
        versions_[version] = held.at(version);
    }
    for (const auto& rollout : checkpoint.rollouts) {
        Place& place = rollouts_[rollout.id];
        place.version_started = rollout.version_started;
        place.finished = rollout.finished;
        place.text = rollout.text;
        for (const auto& segment : rollout.segments) {
            place.segments.push_back({held.at(segment.version), segment.first_token});
        }
    }
    pending_ = checkpoint.pending;
    for (const auto& open : checkpoint.open_groups) {
        open_groups_[open.group].written = open.written;
    }

    curve_ = checkpoint.curve;
    next_evaluation_units_ = evaluation_after(curve_.back().units);
    samples_ = checkpoint.samples;
    staleness_ = checkpoint.staleness;
    written_ = checkpoint.written;
    verdict_bits_ = checkpoint.verdict_bits;
    resume_at_ = curve_.back().update;
    timeline_at_resume_ = checkpoint.timeline;
}

template class PipelineLearner<Float32>;
template class PipelineLearner<Float64>;
template class PipelineLearner<Mixed>;

}  // namespace millrace
