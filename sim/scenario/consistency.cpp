#include "sim/scenario/consistency.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>

#include "sim/pipeline/admission.h"
#include "sim/scenario/decode_learner.h"
#include "sim/scenario/object_reader.h"

namespace millrace {
namespace {

/// Slots of all workers together: some tens of gigabytes of sequences are a typing error.
constexpr std::int64_t most_slots = 100'000'000;

std::string counted(std::int64_t count) {
    return std::to_string(count);
}

class ConsistencyCheck {
   public:
    ConsistencyCheck(const JsonNode& root, const Scenario& scenario, Diagnostics& diagnostics)
        : root_(root),
          scenario_(scenario),
          pipeline_(scenario.pipeline),
          diagnostics_(diagnostics),
          batch_(pipeline_.trainers.batch),
          group_(pipeline_.groups.size) {}

    void run() {
        check_warmup();
        check_slots();
        check_update_time();
        check_memory();
        if (const auto* queue = std::get_if<TransferQueueConfig>(&pipeline_.store)) {
            check_queue(*queue);
            check_starting_order(*queue);
        } else {
            const auto& buffer = std::get<ReplayBufferConfig>(pipeline_.store);
            check_shards(buffer);
            check_buffer(buffer);
        }
        check_admission();
        check_learner();
    }

   private:
    /// Whether all of these keys were read without an error.
    bool read_well(std::initializer_list<std::string_view> paths) const {
        return std::all_of(paths.begin(), paths.end(), [&](std::string_view path) { return diagnostics_.clean(path); });
    }

    void report(const std::string& path, std::string message, std::string hint = "") {
        const JsonNode* node = find_path(root_, path);
        diagnostics_.report(node == nullptr ? root_.value_place : node->key_place, path, std::move(message),
                            std::move(hint));
    }

    void check_warmup() {
        const HorizonConfig& horizon = scenario_.horizon;
        if (read_well({"horizon"}) && horizon.warmup_updates && *horizon.warmup_updates >= horizon.updates) {
            report("horizon.warmup_updates", "a warm-up of " + counted(*horizon.warmup_updates) +
                                                 " leaves nothing of " + counted(horizon.updates) +
                                                 " updates to measure");
        }
    }

    void check_slots() {
        if (!read_well({"workers.count", "workers.slots"})) {
            return;
        }
        const WorkersConfig& workers = pipeline_.workers;
        if (workers.count * workers.slots > most_slots) {
            report("workers.slots",
                   counted(workers.slots) + " slots on each of " + counted(workers.count) +
                       " workers (workers.count) make " + counted(workers.count * workers.slots) +
                       ": more than this simulator has memory for",
                   "together they may be at most " + counted(most_slots));
        }
    }

    /// Time is counted in whole nanoseconds: an update below one takes no time at all.
    void check_update_time() {
        if (!read_well({"trainers", "workers.length", "workers.prompt_length"})) {
            return;
        }
        const double mean_s = mean_update_s();
        if (mean_s < shortest_s) {
            report("trainers.service", "an update takes " + number_text(mean_s) + " s on " +
                                           counted(pipeline_.trainers.count) +
                                           " trainers: less than a nanosecond, the unit of simulated time");
        }
    }

    double mean_update_s() const {
        const auto trainers = static_cast<double>(pipeline_.trainers.count);
        if (const auto* fixed = std::get_if<FixedTrainerService>(&pipeline_.trainers.service)) {
            return fixed->gpu_s_per_update.mean() / trainers;
        }
        if (const auto* split = std::get_if<SplitTrainerService>(&pipeline_.trainers.service)) {
            return split->parallel_s / trainers + split->serial_s;
        }
        const auto& per_token = std::get<PerTokenTrainerService>(pipeline_.trainers.service);
        const double tokens = pipeline_.workers.prompt_length.mean() + std::max(1.0, pipeline_.workers.length.mean());
        return per_token.gpu_s_per_token * static_cast<double>(batch_) * tokens / trainers + per_token.base_s;
    }

    /// A sequence joins a worker's batch when all of it fits, so one that never fits waits for ever.
    void check_memory() {
        const auto* step = std::get_if<StepService>(&pipeline_.workers.service);
        if (step == nullptr || !step->kv_cap_tokens ||
            !read_well({"workers.service", "workers.length", "workers.prompt_length"})) {
            return;
        }
        const std::int64_t cap = *step->kv_cap_tokens;
        const double prompt = std::round(pipeline_.workers.prompt_length.maximum());
        const double response = std::max(1.0, std::round(pipeline_.workers.length.maximum()));
        require_bounded("workers.prompt_length", prompt, response, cap);
        require_bounded("workers.length", response, prompt, cap);
        if (std::isfinite(prompt + response) && prompt + response > static_cast<double>(cap)) {
            report("workers.service.kv_cap_tokens",
                   "the longest rollout, " + number_text(prompt) + " prompt and " + number_text(response) +
                       " response tokens, never fits",
                   "it takes at least " + number_text(prompt + response));
        }
    }

    void require_bounded(const std::string& path, double longest, double beside, std::int64_t cap) {
        if (std::isfinite(longest)) {
            return;
        }
        const double room = static_cast<double>(cap) - beside;
        const std::string limit = std::isfinite(room) && room >= 1.0 ? number_text(room) : "...";
        report(path, "this law has no largest value, so a rollout may not fit in kv_cap_tokens = " + counted(cap),
               R"(limit it: {"kind": "truncated", "of": ..., "max": )" + limit + R"(, "mode": "clip"})");
    }

    void check_queue(const TransferQueueConfig& queue) {
        if (!read_well({"store", "trainers.batch", "groups"})) {
            return;
        }
        const bool blocks = queue.overflow == Overflow::block;
        // Groups enter whole. In steady state every size that is a multiple of gcd(batch, group) below the batch
        // occurs, up to the largest one, from which the next group must still fit.
        const std::int64_t shared = std::gcd(batch_, group_);
        const std::int64_t enough = batch_ + group_ - shared;
        if (queue.capacity < batch_) {
            report("store.capacity",
                   "a queue of " + counted(queue.capacity) + " cannot hold a batch: a batch of " + counted(batch_) +
                       " can never fill",
                   "it takes at least " + counted(blocks ? enough : batch_));
        } else if (blocks && queue.capacity < group_) {
            report("store.capacity",
                   "a group of " + counted(group_) + " can never enter a queue of " + counted(queue.capacity),
                   "it takes at least " + counted(enough) + R"(, or "overflow": "drop_oldest")");
        } else if (blocks && queue.capacity < enough) {
            report("store.capacity",
                   "the queue will stop at " + counted(batch_ - shared) + " rollouts: too few for a batch of " +
                       counted(batch_) + ", too many for another group of " + counted(group_) + " in " +
                       counted(queue.capacity),
                   "it takes at least " + counted(enough));
        }
        const std::int64_t fresh = pipeline_.trainers.fresh_per_update;
        if (blocks && read_well({"trainers.fresh_per_update"}) && in_whole_groups(fresh) > batch_) {
            report("trainers.fresh_per_update",
                   "an update takes " + counted(batch_) + " rollouts from the queue, which fills up when " +
                       counted(fresh) + in_groups_text(fresh) + " must enter between updates",
                   at_most_fresh(batch_) + R"(, or use "overflow": "drop_oldest")");
        }
    }

    /// Rollouts come into the store in whole groups, and those beyond the fresh ones an update has waited for do not
    /// count for the next one.
    std::int64_t in_whole_groups(std::int64_t rollouts) const { return (rollouts + group_ - 1) / group_ * group_; }

    std::string in_groups_text(std::int64_t rollouts) const {
        const std::int64_t whole = in_whole_groups(rollouts);
        return whole == rollouts ? "" : " (" + counted(whole) + " in whole groups of " + counted(group_) + ")";
    }

    /// The hint for fresh_per_update when `rollouts` can come in between two updates.
    std::string at_most_fresh(std::int64_t rollouts) const {
        return rollouts < group_ ? "it can only be 0, or groups.size at most " + counted(rollouts)
                                 : "it may be at most " + counted(rollouts / group_ * group_);
    }

    /// A batch in starting order waits for its stragglers; meanwhile everything else that was admitted needs a place.
    void check_starting_order(const TransferQueueConfig& queue) {
        if (queue.order != QueueOrder::as_started || !read_well({"store", "admission", "trainers.batch", "groups"})) {
            return;
        }
        if (queue.overflow == Overflow::drop_oldest) {
            report("store.overflow", "a queue in starting order cannot drop the oldest: it would wait for it",
                   R"(write "block")");
            return;
        }
        if (!pipeline_.admission) {
            report("store.order", "in starting order a queue without admission control would have no end",
                   R"(add "admission": {"kind": "token_bucket", ...})");
            return;
        }
        const std::int64_t admitted = opening_tokens(pipeline_);
        if (queue.capacity < admitted) {
            report("store.capacity",
                   "a queue in starting order needs room for all " + counted(admitted) +
                       " rollouts that admission lets start",
                   "it takes at least " + counted(admitted));
        }
    }

    void check_shards(const ReplayBufferConfig& buffer) {
        if (!buffer.sharded || !read_well({"store.capacity", "store.sharded", "trainers.count", "trainers.batch"})) {
            return;
        }
        check_divides("store.capacity", buffer.capacity, "a buffer");
        check_divides("trainers.batch", batch_, "a batch");
    }

    void check_divides(const std::string& path, std::int64_t value, const std::string& what) {
        const std::int64_t trainers = pipeline_.trainers.count;
        if (value % trainers == 0) {
            return;
        }
        const std::int64_t below = value / trainers * trainers;
        report(path, what + " of " + counted(value) + " does not divide into " + counted(trainers) + " equal shards",
               "the nearest are " + (below > 0 ? counted(below) + " and " : "") + counted(below + trainers));
    }

    std::int64_t shard_count(const ReplayBufferConfig& buffer) const {
        return buffer.sharded ? pipeline_.trainers.count : 1;
    }

    void check_buffer(const ReplayBufferConfig& buffer) {
        if (!read_well({"store", "trainers.batch", "trainers.count", "reward"})) {
            return;
        }
        const std::int64_t shards = shard_count(buffer);
        const std::int64_t places = buffer.capacity / shards;
        const std::int64_t positives = positive_places(places, buffer.positive_bias_delta);
        const std::string each = shards > 1 ? " of each shard" : "";
        if (places > 0 && positives >= places) {
            report("store.eviction.delta", "all " + counted(places) + " places" + each +
                                               " would be for older correct rollouts: none is left for the freshest");
            return;
        }
        if (buffer.sampling == Sampling::uniform_with_replacement) {
            return;
        }
        if (buffer.capacity < batch_) {
            report("store.capacity",
                   "without replacement, a batch of " + counted(batch_) + " can never fill from a buffer of " +
                       counted(buffer.capacity),
                   "it takes at least " + counted(batch_) + R"(, or "sampling": "uniform_with_replacement")");
            return;
        }
        const bool never_correct = pipeline_.reward && pipeline_.reward->correct_probability == 0.0;
        if (never_correct && places - positives < batch_ / shards) {
            report("store.eviction.delta", "no rollout is correct (reward.correct_probability is 0), so only " +
                                               counted(places - positives) + " places" + each +
                                               " ever fill: too few for a batch of " + counted(batch_ / shards));
        }
    }

    /// What stops a pipeline stops it when everything has come to rest: all tokens are back, all of them have been
    /// taken, and every group they complete is in the store. The first batch can always fill (opening_tokens), and a
    /// buffer, once filled, stays so.
    void check_admission() {
        if (!pipeline_.admission || !read_well({"admission", "store", "trainers", "groups"})) {
            return;
        }
        const std::int64_t per_update = pipeline_.admission->rollouts_per_update;
        const std::int64_t fresh = pipeline_.trainers.fresh_per_update;
        const std::int64_t opening = opening_tokens(pipeline_);
        const auto* queue = std::get_if<TransferQueueConfig>(&pipeline_.store);
        if (queue != nullptr && per_update != batch_) {
            report("admission.rollouts_per_update",
                   "an update takes " + counted(batch_) + " rollouts from the transfer queue but lets " +
                       counted(per_update) + " start",
                   "write " + counted(batch_) + ", or leave it out");
        } else if (queue != nullptr && !batches_fill(*queue, opening)) {
            report("admission",
                   "tokens for " + counted(opening) + " rollouts leave a group of " + counted(group_) +
                       " unfinished that a batch of " + counted(batch_) + " needs: the pipeline will stop",
                   "a batch that is a multiple of the group, or more steps_ahead");
        } else if (const std::int64_t most = most_fresh(queue, opening); in_whole_groups(fresh) > most) {
            report("trainers.fresh_per_update",
                   "an update waits for " + counted(fresh) + " new rollouts" + in_groups_text(fresh) +
                       ", but the admission lets only " + counted(most) + " start per update: training stops",
                   at_most_fresh(most));
        }
    }

    bool batches_fill(const TransferQueueConfig& queue, std::int64_t opening) const {
        if (queue.overflow == Overflow::block || opening <= queue.capacity) {
            // After u updates at most floor((opening + u batch) / group) groups have come in, and (u + 1) batch
            // rollouts are needed. In time (u + 1) batch is each multiple of gcd(batch, group) modulo the group.
            return opening - batch_ >= group_ - std::gcd(batch_, group_);
        }
        // Dropped rollouts give their tokens back. Follow the queue from one rest to the next until it repeats itself;
        // it cannot rest while opening - capacity tokens complete a group.
        constexpr std::int64_t long_enough = 100'000;
        std::int64_t size = 0;
        for (std::int64_t update = 0; update <= std::min(queue.capacity, long_enough); ++update) {
            size = std::min(size + (opening - size) / group_ * group_, queue.capacity);
            if (size < batch_) {
                return false;
            }
            size -= batch_;
        }
        return true;
    }

    /// Fresh rollouts that can come in per update, in the long run: what an update gives back, and what is dropped.
    std::int64_t most_fresh(const TransferQueueConfig* queue, std::int64_t opening) const {
        const std::int64_t per_update = pipeline_.admission->rollouts_per_update;
        if (queue == nullptr || queue->overflow == Overflow::block || opening <= queue->capacity) {
            return per_update;
        }
        // A full queue leaves opening - capacity tokens. If they complete a group, it drops rollouts again and again;
        // if not, at most as many per update.
        const std::int64_t beyond = opening - queue->capacity;
        return beyond >= group_ ? std::numeric_limits<std::int64_t>::max() : per_update + beyond;
    }

    void check_learner() {
        if (!scenario_.learner) {
            if (scenario_.horizon.units) {
                report("horizon.units", "only a run with a learner ends by its compute",
                       "without one, horizon.updates says how long to simulate");
            }
            return;
        }
        if (read_well({"groups"}) && group_ < 2) {
            report("groups.size",
                   "a learner compares the rollouts of a group with each other: one alone teaches nothing",
                   "it takes at least 2");
        }
        for (const auto& [path, rollouts] : {std::pair{"groups.size", group_}, {"trainers.batch", batch_}}) {
            if (read_well({path}) && rollouts > most_sequences_of_a_learner) {
                report(path,
                       "a learner holds the text of " + counted(rollouts) +
                           " rollouts at once, too much to keep in memory",
                       "with one it is at most " + counted(most_sequences_of_a_learner));
            }
        }
        if (find_path(root_, "reward.correct_probability") != nullptr) {
            report("reward.correct_probability", "the learner decides which rollouts are correct", "leave it out");
        }
        const auto* buffer = std::get_if<ReplayBufferConfig>(&pipeline_.store);
        if (buffer != nullptr && buffer->positive_bias_delta > 0.0 && scenario_.learner->replicas > 1 &&
            read_well({"store", "learner.replicas"})) {
            report("store.eviction",
                   "what stays in the buffer would depend on rewards, of which each of the " +
                       counted(scenario_.learner->replicas) +
                       " replicas (learner.replicas) has its own, but they share one timeline",
                   R"("learner.replicas": 1 and more "replications", or {"kind": "fifo"})");
        }
    }

    const JsonNode& root_;
    const Scenario& scenario_;
    const PipelineConfig& pipeline_;
    Diagnostics& diagnostics_;
    std::int64_t batch_;
    std::int64_t group_;
};

}  // namespace

void check_consistency(const JsonNode& root, const Scenario& scenario, Diagnostics& diagnostics) {
    ConsistencyCheck(root, scenario, diagnostics).run();
}

}  // namespace millrace
