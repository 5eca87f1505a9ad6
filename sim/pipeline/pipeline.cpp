#include "sim/pipeline/pipeline.h"

#include <algorithm>
#include <cassert>

#include "sim/pipeline/replay_buffer.h"
#include "sim/pipeline/rollout_use.h"
#include "sim/pipeline/transfer_queue.h"

namespace millrace {
namespace {

/// Beyond what a pipeline of any size has to do at one instant, in proportion to which stuck_after_ grows.
constexpr std::int64_t most_events_at_once = 1'000'000;

std::optional<std::int64_t> kv_cap(const WorkersConfig& workers) {
    const auto* step = std::get_if<StepService>(&workers.service);
    return step ? step->kv_cap_tokens : std::nullopt;
}

std::unique_ptr<Store> make_store(const PipelineConfig& config, RolloutPool& pool, std::uint64_t seed,
                                  std::uint64_t replication) {
    if (const auto* queue = std::get_if<TransferQueueConfig>(&config.store)) {
        if (queue->order == QueueOrder::as_started) {
            return std::make_unique<OrderedTransferQueue>(*queue, config.trainers.batch, pool);
        }
        return std::make_unique<TransferQueue>(*queue, config.trainers.batch);
    }
    return std::make_unique<ReplayBuffer>(std::get<ReplayBufferConfig>(config.store), config.trainers.batch,
                                          config.trainers.count, pool, seed, replication);
}

}  // namespace

Pipeline::Pipeline(const PipelineConfig& config, std::uint64_t seed, std::uint64_t replication, Learner* learner)
    : config_(config),
      learner_(learner),
      keeps_correct_ones_(keeps_correct_ones(config.store)),
      source_(config, seed, replication),
      admission_(config.admission, first_batch(config)),
      reward_(config.reward.value_or(RewardConfig{})),
      groups_(config.groups.size),
      store_(make_store(config, rollouts_, seed, replication)),
      trainers_(config.trainers, seed, replication),
      sync_(config.weight_sync, config.workers.count, seed, replication),
      total_slots_(config.workers.count * config.workers.slots),
      worker_clock_(config.workers.count, WorkerState::starved),
      trainer_clock_(config.trainers.count, TrainerState::waiting),
      recorder_(config.noise, capacity(config.store)) {
    const StepTiming timing = StepTiming::from(config.workers);
    for (std::int64_t w = 0; w < config.workers.count; ++w) {
        workers_.emplace_back(InferenceWorker(timing, config.workers.slots, kv_cap(config.workers)));
    }
    events_.make_timers(workers_.size(), static_cast<std::uint32_t>(What::batch_change));
    // A store that has seen this many arrivals while the trainers waited holds what it will ever hold; one that waits
    // for rare correct rollouts takes longer.
    stuck_after_ = 100 * (capacity(config.store) + config.trainers.batch + config.groups.size) + 10 * total_slots_;
    if (const auto* buffer = std::get_if<ReplayBufferConfig>(&config.store);
        buffer && buffer->positive_bias_delta > 0) {
        // How often a learner is right nobody knows beforehand.
        const double correct = learner != nullptr ? 1e-2 : config.reward.value_or(RewardConfig{}).correct_probability;
        if (correct > 0.0) {  // with none correct there is nothing to wait for
            stuck_after_ = static_cast<std::int64_t>(static_cast<double>(stuck_after_) / std::max(correct, 1e-2));
        }
    }
    rollouts_.reserve(static_cast<std::size_t>(total_slots_ + capacity(config.store) + 4 * config.groups.size));
    batch_.reserve(static_cast<std::size_t>(config.trainers.batch));
}

bool Pipeline::run(std::int64_t updates, std::int64_t histogram_start, const std::atomic<bool>* interrupt,
                   std::atomic<std::int64_t>* updates_done) {
    assert(updates_wanted_ == 0);
    updates_wanted_ = updates;
    recorder_.expect(updates, histogram_start);
    for (std::uint32_t w = 0; w < workers_.size(); ++w) {
        offer_slots(w);
    }
    if (learner_ != nullptr) {
        learner_->keep(sync_.versions_in_use());
    }
    settle();

    std::int64_t reported = 0;
    std::int64_t events_at_once = 0;
    Event event;
    while (version_ < updates_wanted_) {
        const Time before = now();
        if (!events_.pop(event)) {
            throw PipelineStuck("deadlock: nothing is left to happen. " + explain());
        }
        handle(event);
        events_at_once = now() == before ? events_at_once + 1 : 0;
        if (events_at_once > stuck_after_ + most_events_at_once) {
            throw PipelineStuck("time stands still: a service law takes less than a nanosecond. " + explain());
        }
        if (version_ != reported) {
            reported = version_;
            if (updates_done != nullptr) {
                updates_done->fetch_add(1, std::memory_order_relaxed);
            }
        }
        if (interrupt != nullptr && interrupt->load(std::memory_order_relaxed)) {
            return version_ >= updates_wanted_;
        }
    }
    return true;
}

ReplicationRecord Pipeline::take_record() {
    ReplicationRecord record = recorder_.take();
    record.events = events_.popped();
    record.order_digest = events_.digest();
    return record;
}

// ---- events -------------------------------------------------------------------------------------------------------

void Pipeline::handle(const Event& event) {
    // Most events are changes of a batch, which a branch foresees and the jump of a switch does not.
    if (event.kind == static_cast<std::uint32_t>(What::batch_change)) [[likely]] {
        on_batch_change(event.entity);
        settle();
    } else if (handle_rarer(event)) {
        settle();
    }
}

/// False when nothing else can move because of it.
bool Pipeline::handle_rarer(const Event& event) {
    switch (static_cast<What>(event.kind)) {
        case What::batch_change:
            assert(false);
            break;
        case What::graded:
            if (const auto next = reward_.finish()) {
                events_.schedule(now() + next->takes, {static_cast<std::uint32_t>(What::graded), next->rollout, 0});
            }
            flows_.reward.leave(now(), rollouts_[event.entity].entered);
            return on_graded(event.entity);
        case What::group_graded:
            on_group_graded(event.entity);
            break;
        case What::update_done:
            on_update_done();
            break;
        case What::weights_delivered:
            on_weights_delivered(event.entity);
            break;
    }
    return true;
}

void Pipeline::on_batch_change(std::uint32_t w) {
    WorkerPlace& place = workers_[w];
    scratch_.clear();
    place.worker.change_batch(now(), scratch_);
    for (const RolloutIndex rollout : scratch_) {
        on_generated(rollout);
    }
    offer_slots(w);
    touch(w);
}

void Pipeline::on_generated(RolloutIndex index) {
    Rollout& rollout = rollouts_[index];
    rollout.generated = true;
    recorder_.generated();
    flows_.workers.leave(now(), rollout.entered);
    if (learner_ != nullptr) {
        learner_->finish(rollout.id);
    }
    if (reward_.instant()) {
        on_graded(index);
        return;
    }
    flows_.reward.enter(now());
    if (reward_.unlimited()) {
        rollout.entered = now() + rollout.grading;
        if (groups_.will_be_graded(rollout.group, rollout.entered)) {
            events_.schedule(groups_.complete_at(rollout.group),
                             {static_cast<std::uint32_t>(What::group_graded), rollout.group, 0});
        }
        return;
    }
    rollout.entered = now();
    if (const auto begun = reward_.arrive(index, rollout.grading)) {
        events_.schedule(now() + begun->takes, {static_cast<std::uint32_t>(What::graded), begun->rollout, 0});
    }
}

/// Whether the rollout completes its group.
bool Pipeline::on_graded(RolloutIndex index) {
    Rollout& rollout = rollouts_[index];
    rollout.entered = now();
    flows_.assembly.enter(now());
    if (!groups_.graded(rollout.group)) {
        return false;
    }
    finished_groups_.push_back(rollout.group);
    return true;
}

void Pipeline::on_group_graded(GroupIndex group) {
    for (const RolloutIndex index : groups_.members(group)) {
        const Rollout& rollout = rollouts_[index];
        flows_.reward.leave(rollout.entered, rollout.entered - rollout.grading);
        flows_.assembly.enter(rollout.entered);
    }
    groups_.handed_on(group);
    finished_groups_.push_back(group);
}

/// Without reward servers to wait for, flows_ hears of gradings when their group is complete; here they are told apart.
PipelineFlows Pipeline::flows() const {
    PipelineFlows flows = flows_;
    if (reward_.instant() || !reward_.unlimited()) {
        return flows;
    }
    groups_.visit_incomplete([&](std::span<const RolloutIndex> members) {
        for (const RolloutIndex index : members) {
            const Rollout& rollout = rollouts_[index];
            if (rollout.generated && rollout.entered <= now()) {
                flows.reward.leave(rollout.entered, rollout.entered - rollout.grading);
                flows.assembly.enter(rollout.entered);
            }
        }
    });
    return flows;
}

void Pipeline::on_update_done() {
    ++version_;
    trainer_clock_.move_all(now(), TrainerState::busy, TrainerState::waiting);
    trainer_state_ = TrainerState::waiting;
    if (sync_.publishes(version_)) {
        publish_weights();
    } else {
        admission_.give_back(admission_.per_update());
    }
    recorder_.end_update(now(), worker_clock_, trainer_clock_, flows_.workers, flows_.store);
    if (learner_ != nullptr && !learner_->updated(version_, spent())) {
        updates_wanted_ = version_;
    }
}

ComputeSpent Pipeline::spent() const {
    const auto worker_ns = worker_clock_.spent_ns(now());
    const auto trainer_ns = trainer_clock_.spent_ns(now());
    ComputeSpent spent;
    spent.at = now();
    spent.worker_active_gpu_s = static_cast<double>(worker_ns[static_cast<std::size_t>(WorkerState::busy)]) * 1e-9;
    spent.trainer_active_gpu_s = static_cast<double>(trainer_ns[static_cast<std::size_t>(TrainerState::busy)]) * 1e-9;
    spent.reserved_gpu_s = static_cast<double>(config_.workers.count + config_.trainers.count) * seconds(now());
    return spent;
}

void Pipeline::publish_weights() {
    sync_.publish(version_, admission_.per_update());
    if (learner_ != nullptr) {
        learner_->keep(sync_.versions_in_use());
    }
    for (std::uint32_t w = 0; w < workers_.size(); ++w) {
        begin_transfer(w);
    }
    if (sync_.trainers_wait() && sync_.under_way()) {
        trainer_clock_.move_all(now(), TrainerState::waiting, TrainerState::stalled);
        trainer_state_ = TrainerState::stalled;
    }
}

void Pipeline::begin_transfer(std::uint32_t w) {
    const auto takes = sync_.begin_transfer(w);
    if (!takes) {
        return;
    }
    if (takes->ns == 0) {
        deliver_weights(w);
        return;
    }
    if (sync_.in_flight() == InFlight::in_place) {
        workers_[w].worker.pause(now());
        touch(w);
    }
    events_.schedule(now() + *takes, {static_cast<std::uint32_t>(What::weights_delivered), w, 0});
}

void Pipeline::deliver_weights(std::uint32_t w) {
    admission_.give_back(sync_.deliver(w));
    if (learner_ == nullptr) {
        return;
    }
    if (sync_.in_flight() == InFlight::in_place) {
        for (const auto& [rollout, written] : workers_[w].worker.progress(now())) {
            learner_->switch_version(rollouts_[rollout].id, sync_.version(w), written);
        }
    }
    learner_->keep(sync_.versions_in_use());
}

void Pipeline::on_weights_delivered(std::uint32_t w) {
    deliver_weights(w);
    if (workers_[w].worker.paused()) {
        workers_[w].worker.resume(now());
        offer_slots(w);
        touch(w);
    }
    begin_transfer(w);
    if (trainer_state_ == TrainerState::stalled && !sync_.under_way()) {
        trainer_clock_.move_all(now(), TrainerState::stalled, TrainerState::waiting);
        trainer_state_ = TrainerState::waiting;
    }
}

// ---- what can move, moves -----------------------------------------------------------------------------------------

void Pipeline::settle() {
    // Most often neither can do anything, and that is seen without a call.
    while ((!finished_groups_.empty() && move_groups_into_store()) ||
           (trainer_state_ == TrainerState::waiting && begin_update())) {
    }
    start_rollouts();
    schedule_wake_ups();
}

bool Pipeline::move_groups_into_store() {
    bool moved = false;
    while (!finished_groups_.empty() && store_->has_room(config_.groups.size)) {
        const GroupIndex group = finished_groups_.pop_front();
        for (const RolloutIndex index : groups_.members(group)) {
            Rollout& rollout = rollouts_[index];
            rollout.version_stored = version_;
            if (learner_ != nullptr && keeps_correct_ones_) {
                rollout.correct = learner_->correct(rollout.id);
            }
            flows_.assembly.leave(now(), rollout.entered);
            rollout.entered = now();
        }
        flows_.store.enter(now(), config_.groups.size);
        recorder_.stored(config_.groups.size);
        scratch_.clear();
        store_->put(groups_.members(group), scratch_);
        groups_.close(group);
        if (std::holds_alternative<TransferQueueConfig>(config_.store)) {
            admission_.give_back(static_cast<std::int64_t>(scratch_.size()));
        }
        leave_store(scratch_);
        stored_since_update_began_ += config_.groups.size;
        moved = true;
    }
    if (moved && trainer_state_ != TrainerState::busy && stored_since_update_began_ > stuck_after_) {
        check_progress();
    }
    return moved;
}

bool Pipeline::begin_update() {
    assert(trainer_state_ == TrainerState::waiting);
    if (version_ >= updates_wanted_ || !store_->can_fill_batch() ||
        (version_ > 0 && stored_since_update_began_ < config_.trainers.fresh_per_update)) {
        return false;
    }
    const std::int64_t tokens_before = recorder_.tokens();
    use_batch();
    stored_since_update_began_ = 0;
    trainer_clock_.move_all(now(), TrainerState::waiting, TrainerState::busy);
    trainer_state_ = TrainerState::busy;
    events_.schedule(now() + trainers_.service(version_, recorder_.tokens() - tokens_before),
                     {static_cast<std::uint32_t>(What::update_done), 0, 0});
    return true;
}

void Pipeline::use_batch() {
    batch_.clear();
    scratch_.clear();
    store_->draw_batch(version_, batch_, scratch_);
    for (const RolloutIndex index : batch_) {
        recorder_.use(use_rollout(rollouts_[index], version_));
    }
    recorder_.end_batch();
    if (learner_ != nullptr) {
        batch_ids_.clear();
        for (const RolloutIndex index : batch_) {
            batch_ids_.push_back(rollouts_[index].id);
        }
        learner_->update(version_, batch_ids_);
    }
    leave_store(scratch_);
}

void Pipeline::leave_store(std::span<const RolloutIndex> leaving) {
    for (const RolloutIndex index : leaving) {
        const Rollout& rollout = rollouts_[index];
        flows_.store.leave(now(), rollout.entered);
        recorder_.left_store(rollout.uses, version_ - rollout.version_started);
        if (learner_ != nullptr) {
            learner_->forget(rollout.id);
        }
        rollouts_.release(index);
    }
}

}  // namespace millrace
