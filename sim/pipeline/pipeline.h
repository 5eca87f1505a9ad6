// The pipeline: workers, reward stage, group assembly, store, trainers and weight synchronisation joined on one clock.
//
// Stations do not know each other. Each event goes to its station; what comes out is handed on here, and then
// everything that can move does: finished groups into the store, a batch into the trainers, new rollouts onto workers.
// The synchronous on-policy pipeline and one-step-off are the same stations under admission control.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/metrics/recorder.h"
#include "sim/metrics/role_clock.h"
#include "sim/metrics/station_flow.h"
#include "sim/pipeline/admission.h"
#include "sim/pipeline/config.h"
#include "sim/pipeline/group_assembly.h"
#include "sim/pipeline/growing_ring.h"
#include "sim/pipeline/inference_worker.h"
#include "sim/pipeline/learner.h"
#include "sim/pipeline/reward_stage.h"
#include "sim/pipeline/rollout.h"
#include "sim/pipeline/rollout_source.h"
#include "sim/pipeline/store.h"
#include "sim/pipeline/trainers.h"
#include "sim/pipeline/weight_sync.h"

namespace millrace {

/// The pipeline cannot make another update: a deadlock, or a batch that never fills. what() explains which.
struct PipelineStuck : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What passes through each part of the pipeline, for Little's law and the conservation of rollouts.
struct PipelineFlows {
    StationFlow workers;   ///< being generated
    StationFlow reward;    ///< waiting for grading and being graded; untouched when grading is instant
    StationFlow assembly;  ///< waiting for the rest of the group, and for room in the store
    StationFlow store;
};

class Pipeline {
   public:
    /// With a learner, rollouts are really written and updates really made; it must outlive the pipeline.
    Pipeline(const PipelineConfig& config, std::uint64_t seed, std::uint64_t replication, Learner* learner = nullptr);

    /// Simulates until `updates` updates are done, or fewer if the learner ends the run; false if `interrupt` turned
    /// true before. Histograms cover the updates after `histogram_start`. `updates_done`, when given, is raised by one
    /// per update for a progress display. Throws PipelineStuck. To be called once.
    bool run(std::int64_t updates, std::int64_t histogram_start = 0, const std::atomic<bool>* interrupt = nullptr,
             std::atomic<std::int64_t>* updates_done = nullptr);

    /// The counts of the run; moves them out.
    ReplicationRecord take_record();

    // For tests and explanations.
    Time now() const { return events_.now(); }
    PipelineFlows flows() const;
    std::size_t living_rollouts() const { return rollouts_.living(); }
    std::int32_t version() const { return version_; }

   private:
    enum class What : std::uint32_t { batch_change, graded, update_done, weights_delivered, group_graded };

    /// What a worker does; why the idle ones do nothing is the same for all (idle_as_).
    enum class Activity { busy, paused, idle };

    struct WorkerPlace {
        explicit WorkerPlace(InferenceWorker w) : worker(std::move(w)) {}

        InferenceWorker worker;
        Activity activity = Activity::idle;
        bool offers_slots = false;         ///< stands in offering_
        std::int64_t declined_tokens = 0;  ///< the rollout it last had no memory for; 0: none. Stands in declined_
        bool needs_wake_up = false;        ///< its next change has to be scheduled anew; stands in touched_
    };

    void handle(const Event& event);
    bool handle_rarer(const Event& event);
    void on_batch_change(std::uint32_t worker);
    void on_generated(RolloutIndex rollout);
    bool on_graded(RolloutIndex rollout);
    void on_group_graded(GroupIndex group);
    void on_update_done();
    void on_weights_delivered(std::uint32_t worker);

    void settle();
    bool move_groups_into_store();
    bool begin_update();
    void use_batch();
    void leave_store(std::span<const RolloutIndex> leaving);
    void start_rollouts();
    bool may_start() const;
    void offer_again_where_declined();
    void start_next_rollout(std::uint32_t worker);
    void publish_weights();
    void begin_transfer(std::uint32_t worker);
    void deliver_weights(std::uint32_t worker);
    ComputeSpent spent() const;
    void schedule_wake_ups();

    void offer_slots(std::uint32_t worker) {
        if (!workers_[worker].offers_slots) {
            workers_[worker].offers_slots = true;
            offering_.push_back(worker);
        }
    }
    void touch(std::uint32_t worker) {
        if (!workers_[worker].needs_wake_up) {
            workers_[worker].needs_wake_up = true;
            touched_.push_back(worker);
        }
    }
    void set_state(WorkerPlace& place);
    WorkerState state(Activity activity) const;
    void check_progress() const;
    std::string explain() const;

    PipelineConfig config_;
    Learner* learner_;
    bool keeps_correct_ones_;  ///< the store has to know which rollouts got their reward
    EventQueue events_;
    RolloutPool rollouts_;
    RolloutSource source_;
    Admission admission_;
    std::vector<WorkerPlace> workers_;
    RewardStage reward_;
    GroupAssembly groups_;
    std::unique_ptr<Store> store_;
    Trainers trainers_;
    WeightSync sync_;

    std::int32_t version_ = 0;  ///< updates done
    std::int64_t updates_wanted_ = 0;
    TrainerState trainer_state_ = TrainerState::waiting;
    WorkerState idle_as_ = WorkerState::starved;  ///< what an empty worker is waiting for at present
    GroupIndex open_group_ = 0;
    std::int64_t total_slots_ = 0;
    std::int64_t stored_since_update_began_ = 0;
    std::int64_t stuck_after_ = 0;  ///< so many rollouts stored without an update beginning mean that none ever will

    GrowingRing<GroupIndex> finished_groups_;  ///< complete, waiting for room in the store
    GrowingRing<std::uint32_t> offering_;      ///< workers that may have a free slot, next in turn first
    std::vector<std::uint32_t> declined_;      ///< workers that had slots but no memory for the next rollout
    std::vector<std::uint32_t> touched_;
    std::vector<RolloutIndex> scratch_;
    std::vector<RolloutIndex> batch_;
    std::vector<std::uint64_t> batch_ids_;

    PipelineFlows flows_;  ///< see flows() for what it does not know yet
    WorkerClock worker_clock_;
    TrainerClock trainer_clock_;
    Recorder recorder_;
};

}  // namespace millrace
