#include "sim/explain/pipeline_graph.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "sim/explain/pipeline_counts.h"

namespace millrace {
namespace {

using Vertex = MarkedGraph::Vertex;

constexpr std::int64_t most_firings = 1'000'000;  ///< of rollouts or updates in one round of a graph

double number(std::int64_t n) {
    return static_cast<double>(n);
}

/// What both grains share: the updates of a round, with the weights that they hand to the workers.
class Builder {
   public:
    explicit Builder(const PipelineConfig& config)
        : config_(config), times_(times_of(config)), counts_(counts_of(config)), updates_(counts_.repeats) {
        result_.graph.activities = {
            "generation", "generation with full slots", "grading",  "update", "weight transfer", "slot",
            "admission",  "room in the store",          "rollouts", "order"};
        if (number(updates_) * number(counts_.per_update) > 1e15 || updates_ > most_firings) {
            throw std::length_error("groups of " + std::to_string(counts_.group) + " fit batches of " +
                                    std::to_string(counts_.per_update) + " and weight_sync.every only after " +
                                    std::to_string(updates_) + " updates: too many for a graph");
        }
        result_.updates = updates_;
        result_.rollouts = updates_ * counts_.per_update;
        result_.trainers_wait_for_rollouts = counts_.waits;
        result_.constant_times = times_.constant;
        result_.approximations = left_out(config, times_, counts_);
    }

    PipelineGraph by_rollouts();
    PipelineGraph by_batches();

   private:
    void add_updates();
    void add_full_slots();
    void add_starts();
    void add_room();
    void add_batches();

    std::string label(const std::string& what, std::int64_t u) const {
        return updates_ == 1 ? what : what + ", update " + std::to_string(u + 1);
    }
    Vertex vertex(const std::string& name) { return result_.graph.add_vertex(name); }
    void edge(Vertex from, Vertex to, double duration_s, std::int64_t tokens, MarkedGraph::Activity what) {
        result_.graph.add_edge(from, to, duration_s, tokens, what);
    }
    /// From update `u`, which may lie in an earlier round, by one of its vertices.
    void from_update(const std::vector<Vertex>& of_update, std::int64_t u, Vertex to, MarkedGraph::Activity what,
                     double duration_s = 0.0) {
        const std::int64_t round = floor_of(u, updates_);
        edge(of_update[static_cast<std::size_t>(u - round * updates_)], to, duration_s, -round, what);
    }
    /// The same for rollouts.
    void from_rollout(const std::vector<Vertex>& of_rollout, std::int64_t i, Vertex to, MarkedGraph::Activity what,
                      double duration_s = 0.0) {
        const std::int64_t round = floor_of(i, result_.rollouts);
        edge(of_rollout[static_cast<std::size_t>(i - round * result_.rollouts)], to, duration_s, -round, what);
    }

    const PipelineConfig& config_;
    PipelineTimes times_;
    PipelineCounts counts_;
    std::int64_t updates_;
    PipelineGraph result_;

    std::vector<Vertex> begins_;   ///< update u begins
    std::vector<Vertex> returns_;  ///< update u gives its admission tokens back
    std::vector<Vertex> starts_;   ///< rollout i starts
    std::vector<Vertex> made_;     ///< rollout i is generated; where that is not a fixed time after its start
    std::vector<Vertex> stored_;   ///< rollout i enters the store; where the queue blocks
};

void Builder::add_updates() {
    const WeightSyncConfig& sync = config_.weight_sync;
    std::vector<Vertex> ends;
    for (std::int64_t u = 0; u < updates_; ++u) {
        begins_.push_back(vertex(label("update begins", u)));
        ends.push_back(vertex(label("update done", u)));
        edge(begins_.back(), ends.back(), times_.update, 0, activity::update);
    }
    result_.update = begins_.front();
    for (std::int64_t u = 0; u < updates_; ++u) {
        const auto here = static_cast<std::size_t>(u);
        Vertex back = ends[here];
        Vertex goes_on = ends[here];
        if (counts_.transfers && (u + 1) % sync.every == 0 && times_.transfer > 0.0) {
            // Where a transfer may end after the next update, whose tokens come back at once, the first tokens to come
            // back come no later than that update's.
            const bool in_turn = sync.every == 1 || sync.trainers_wait;
            const double lag =
                in_turn ? times_.transfer : (times_.constant ? std::min(times_.transfer, times_.update) : 0.0);
            back = vertex(label("weights delivered", u));
            edge(ends[here], back, lag, 0, activity::transfer);
            goes_on = sync.trainers_wait ? back : goes_on;
        }
        returns_.push_back(back);
        const bool last = u + 1 == updates_;
        edge(goes_on, begins_[last ? 0 : here + 1], 0.0, last ? 1 : 0, activity::order);
    }
}

/// What the workers can make at most, and the graders: rates that hold for every order and spread of service times.
void Builder::add_full_slots() {
    const WeightSyncConfig& sync = config_.weight_sync;
    const double work_s = number(result_.rollouts) * times_.full_gpu_s / number(config_.workers.count);
    const bool takes_every_version =
        sync.trainers_wait || (times_.constant && times_.transfer <= number(sync.every) * times_.update);
    double pauses_s = 0.0;
    if (sync.in_flight == InFlight::in_place && takes_every_version) {
        pauses_s = times_.transfer * number(updates_ / sync.every);
    }
    const Vertex workers = vertex("workers with full slots");
    edge(workers, workers, work_s + pauses_s, 1, activity::full_slots);
    result_.generation = workers;
    if (counts_.waits) {
        edge(workers, begins_.front(), 0.0, 0, activity::batch);
    }
    if (counts_.waits && config_.reward && config_.reward->servers && times_.grading > 0.0) {
        const Vertex graders = vertex("all graders busy");
        edge(graders, graders, number(result_.rollouts) * times_.grading / number(*config_.reward->servers), 1,
             activity::grading);
        edge(graders, begins_.front(), 0.0, 0, activity::batch);
    }
}

/// Rollouts start in order, each on the first free slot.
void Builder::add_starts() {
    const std::int64_t rollouts = result_.rollouts;
    const std::int64_t slots = config_.workers.count * times_.slots;
    for (std::int64_t i = 0; i < rollouts; ++i) {
        starts_.push_back(vertex("rollout " + std::to_string(i + 1)));
    }
    if (times_.slows_down) {
        for (std::int64_t i = 0; i < rollouts; ++i) {
            made_.push_back(vertex("rollout " + std::to_string(i + 1) + " made"));
        }
    }
    for (std::int64_t i = 0; i < rollouts; ++i) {
        const Vertex start = starts_[static_cast<std::size_t>(i)];
        from_rollout(starts_, i - 1, start, activity::order);
        if (times_.slows_down) {
            const Vertex made = made_[static_cast<std::size_t>(i)];
            edge(start, made, times_.alone(), 0, activity::generation);
            from_rollout(made_, i - config_.workers.count, made, activity::generation, times_.own);
            from_rollout(made_, i - slots, start, activity::slot);
        } else {
            from_rollout(starts_, i - slots, start, activity::generation, times_.alone());
        }
        if (counts_.opening) {
            // Shifted so that the last rollout that update u needs lies in its own round.
            const std::int64_t shift = counts_.queue ? 0 : counts_.first - counts_.per_update;
            const std::int64_t update = counts_.returns_before(i + shift) - 1;
            from_update(returns_, update, start, activity::permission);
        }
    }
    edge(result_.generation, starts_.front(), 0.0, 0, activity::order);
    result_.generation = starts_.front();
}

/// A queue that blocks: what comes in needs the room that an update's batch has left.
void Builder::add_room() {
    const auto* queue = std::get_if<TransferQueueConfig>(&config_.store);
    const bool can_block = queue != nullptr && queue->overflow == Overflow::block &&
                           !(counts_.opening && *counts_.opening <= queue->capacity);
    if (!can_block) {
        return;
    }
    const auto needs_room = [&](std::int64_t rollouts, Vertex stored) {
        // So many batches must have been drawn before the queue holds no more than its capacity.
        const std::int64_t batches = ceil_of(rollouts - queue->capacity, counts_.per_update);
        from_update(begins_, batches - 1, stored, activity::room);
    };
    if (counts_.group > 1 || times_.grading > 0.0) {
        for (std::int64_t u = 0; u < updates_; ++u) {
            const Vertex stored = vertex(label("batch in store", u));
            needs_room(counts_.needed(u), stored);
            edge(stored, begins_[static_cast<std::size_t>(u)], 0.0, 0, activity::batch);
        }
        return;
    }
    // A rollout without room keeps its slot, so a start waits for the rollout that many places before it to be stored.
    const std::int64_t slots = config_.workers.count * config_.workers.slots;
    for (std::int64_t i = 0; i < result_.rollouts; ++i) {
        stored_.push_back(vertex("rollout " + std::to_string(i + 1) + " stored"));
    }
    for (std::int64_t i = 0; i < result_.rollouts; ++i) {
        const auto here = static_cast<std::size_t>(i);
        needs_room(i + 1, stored_[here]);
        if (times_.slows_down) {
            edge(made_[here], stored_[here], 0.0, 0, activity::order);
        } else {
            edge(starts_[here], stored_[here], times_.alone(), 0, activity::generation);
        }
        from_rollout(stored_, i - slots, starts_[here], activity::slot);
    }
    for (std::int64_t u = 0; u < updates_; ++u) {
        edge(stored_[static_cast<std::size_t>(counts_.needed(u) - 1)], begins_[static_cast<std::size_t>(u)], 0.0, 0,
             activity::batch);
    }
}

/// First come, first graded, on a number of servers or all at once.
void Builder::add_batches() {
    const std::optional<std::int64_t> servers = config_.reward ? config_.reward->servers : std::nullopt;
    const bool queues = servers && times_.grading > 0.0;
    std::vector<Vertex> grading;
    const auto made_to = [&](std::size_t i, Vertex to, MarkedGraph::Activity then) {
        if (times_.slows_down) {
            edge(made_[i], to, 0.0, 0, then);
        } else {
            edge(starts_[i], to, times_.alone(), 0, activity::generation);
        }
    };
    if (queues) {
        for (std::int64_t i = 0; i < result_.rollouts; ++i) {
            grading.push_back(vertex("grading of rollout " + std::to_string(i + 1)));
        }
        for (std::int64_t i = 0; i < result_.rollouts; ++i) {
            made_to(static_cast<std::size_t>(i), grading[static_cast<std::size_t>(i)], activity::order);
            from_rollout(grading, i - *servers, grading[static_cast<std::size_t>(i)], activity::grading,
                         times_.grading);
        }
    }
    for (std::int64_t u = 0; u < updates_; ++u) {
        const Vertex begins = begins_[static_cast<std::size_t>(u)];
        const std::int64_t needed = counts_.queue ? counts_.needed(u) : (u + 1) * counts_.per_update;
        const auto last = static_cast<std::size_t>(needed - 1);
        if (queues) {
            edge(grading[last], begins, times_.grading, 0, activity::grading);
        } else if (times_.grading > 0.0) {
            const Vertex made = vertex(label("batch generated", u));
            made_to(last, made, activity::batch);
            edge(made, begins, times_.grading, 0, activity::grading);
        } else {
            made_to(last, begins, activity::batch);
        }
    }
}

PipelineGraph Builder::by_rollouts() {
    if (result_.rollouts > most_firings) {
        throw std::length_error("batch, groups and weight_sync.every fit together only every " +
                                std::to_string(result_.rollouts) + " rollouts: too many for a graph of rollouts");
    }
    add_updates();
    add_full_slots();
    add_starts();
    if (counts_.waits) {
        add_batches();
        add_room();
    }
    return std::move(result_);
}

PipelineGraph Builder::by_batches() {
    add_updates();
    add_full_slots();
    for (std::int64_t u = 0; counts_.waits && counts_.opening && u < updates_; ++u) {
        // The last tokens that this batch waits for, and how many of its rollouts start with them only.
        const std::int64_t needed = counts_.needed(u);
        const std::int64_t returns = counts_.returns_before(needed - 1);
        const std::int64_t fresh = needed - *counts_.opening - (returns - 1) * counts_.per_update;
        const double together_s = number(fresh) * times_.full_gpu_s / number(config_.workers.count);
        const bool bound_by_rate = together_s > times_.alone();
        const Vertex made = vertex(label("batch generated", u));
        from_update(returns_, returns - 1, made, bound_by_rate ? activity::full_slots : activity::generation,
                    std::max(together_s, times_.alone()));
        edge(made, begins_[static_cast<std::size_t>(u)], times_.grading, 0,
             times_.grading > 0.0 ? activity::grading : activity::batch);
    }
    return std::move(result_);
}

}  // namespace

PipelineGraph rollout_graph(const PipelineConfig& config) {
    return Builder(config).by_rollouts();
}

PipelineGraph batch_graph(const PipelineConfig& config) {
    return Builder(config).by_batches();
}

}  // namespace millrace
