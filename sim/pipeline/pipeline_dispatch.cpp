// How the pipeline starts rollouts on workers, and keeps track of when each worker has to be looked at again.
#include <vector>

#include "sim/pipeline/pipeline.h"

namespace millrace {

bool Pipeline::may_start() const {
    // A finished rollout that finds no room in the store keeps a slot occupied, as in the paper's listing, where a
    // worker that cannot put its rollout does not begin another.
    const auto held_back = static_cast<std::int64_t>(finished_groups_.size()) * config_.groups.size;
    return admission_.allows() && flows_.workers.present() + held_back < total_slots_;
}

void Pipeline::start_rollouts() {
    // Workers take turns, so that a burst of permissions spreads evenly over them.
    while (!offering_.empty() && may_start()) {
        const std::uint32_t w = offering_.pop_front();
        WorkerPlace& place = workers_[w];
        const RolloutPlan& plan = source_.next();
        const std::int64_t tokens = std::int64_t{plan.prompt_tokens} + plan.tokens;
        place.offers_slots = false;  // it comes back when its batch has changed or it resumes
        if (place.worker.paused() || !place.worker.has_free_slot()) {
            continue;
        }
        if (!place.worker.has_memory(tokens)) {
            if (place.declined_tokens == 0) {
                declined_.push_back(w);
            }
            place.declined_tokens = tokens;
            continue;
        }
        start_next_rollout(w);
        if (place.worker.has_free_slot()) {
            offer_slots(w);
        }
        if (!declined_.empty()) {
            offer_again_where_declined();
        }
    }
    const WorkerState reason = finished_groups_.empty() ? WorkerState::starved : WorkerState::blocked;
    if (reason != idle_as_) {
        worker_clock_.move_all(now(), idle_as_, reason);
        idle_as_ = reason;
    }
}

/// The next rollout may be small enough for workers that had no memory for the ones before it.
void Pipeline::offer_again_where_declined() {
    const RolloutPlan& plan = source_.next();
    std::erase_if(declined_, [&](std::uint32_t w) {
        WorkerPlace& place = workers_[w];
        if (plan.prompt_tokens + plan.tokens < place.declined_tokens) {
            offer_slots(w);
        }
        if (place.offers_slots) {
            place.declined_tokens = 0;
        }
        return place.offers_slots;
    });
}

void Pipeline::start_next_rollout(std::uint32_t w) {
    const RolloutPlan& plan = source_.next();
    const RolloutIndex index = rollouts_.acquire();
    Rollout& rollout = rollouts_[index];
    rollout.id = plan.id;
    rollout.tokens = std::int64_t{plan.prompt_tokens} + plan.tokens;
    rollout.grading = plan.grading;
    rollout.correct = plan.correct;
    rollout.version_started = sync_.version(w);
    if (plan.first_of_group) {
        open_group_ = groups_.open(rollout.version_started);
    }
    rollout.group = open_group_;
    rollout.version_group = groups_.version(open_group_);
    groups_.add(open_group_, index);
    rollout.entered = now();
    if (learner_ != nullptr) {
        learner_->begin(rollout.id, rollout.version_started);
    }
    flows_.workers.enter(now());
    admission_.take();
    workers_[w].worker.join(now(), index, plan.prompt_tokens, plan.tokens, plan.steps);
    source_.advance();
    touch(w);
}

WorkerState Pipeline::state(Activity activity) const {
    switch (activity) {
        case Activity::busy:
            return WorkerState::busy;
        case Activity::paused:
            return WorkerState::paused;
        case Activity::idle:
            break;
    }
    return idle_as_;
}

void Pipeline::set_state(WorkerPlace& place) {
    const Activity activity = place.worker.paused()         ? Activity::paused
                              : place.worker.occupied() > 0 ? Activity::busy
                                                            : Activity::idle;
    if (activity != place.activity) [[unlikely]] {
        worker_clock_.move(now(), state(place.activity), state(activity));
        place.activity = activity;
    }
}

void Pipeline::schedule_wake_ups() {
    for (const std::uint32_t w : touched_) {
        WorkerPlace& place = workers_[w];
        place.needs_wake_up = false;
        if (const Time change = place.worker.next_change(); change != end_of_time) {
            events_.set_timer(w, change);
            groups_.prefetch(rollouts_[place.worker.next_to_end()].group);  // what the change will need
        } else {
            events_.stop_timer(w);
        }
        set_state(place);
    }
    touched_.clear();
}

}  // namespace millrace
