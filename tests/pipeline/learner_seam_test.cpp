// What the pipeline tells a learner: a ledger of all calls, held against the contract and against the recorder.
#include "sim/pipeline/learner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/random.h"
#include "sim/pipeline/pipeline.h"
#include "tests/pipeline/sample_pipelines.h"

using namespace millrace;
using namespace millrace_test;

namespace {

constexpr std::uint64_t seed = 7;

/// A learner that does nothing but check the order of what it is told. Its rewards are those that the pipeline would
/// have drawn without it, so that the timeline has no reason to differ.
class Ledger final : public Learner {
   public:
    struct Entry {
        std::int32_t began_with = 0;
        std::int32_t version = 0;
        double written = 0.0;
        bool finished = false;
        bool forgotten = false;
        std::uint64_t uses = 0;
    };

    explicit Ledger(const PipelineConfig& config, std::int32_t end_at = -1)
        : correct_probability(config.reward.value_or(RewardConfig{}).correct_probability),
          config_(config),
          end_at_(end_at),
          correct_stream_(seed, 0, Purpose::reward_correct) {}

    void begin(std::uint64_t id, std::int32_t version) override {
        expect(id == rollouts.size(), "ids count up from 0");
        expect(is_kept(version), "a rollout begins with a version that is kept");
        rollouts.push_back({version, version});
    }
    void switch_version(std::uint64_t id, std::int32_t version, double written) override {
        Entry& rollout = rollouts.at(id);
        expect(config_.weight_sync.in_flight == InFlight::in_place, "only in_place switches");
        expect(!rollout.finished, "only an unfinished rollout switches");
        expect(version > rollout.version && is_kept(version), "it switches to a newer version that is kept");
        expect(written >= rollout.written && written < 1.0, "the share written does not shrink and is below 1");
        rollout.version = version;
        rollout.written = written;
        ++switches;
        switches_midway += written > 0.0 ? 1 : 0;
    }
    void finish(std::uint64_t id) override {
        expect(!rollouts.at(id).finished, "a rollout finishes once");
        rollouts[id].finished = true;
        ++finished;
    }
    bool correct(std::uint64_t id) override {
        expect(keeps_correct_ones(config_.store), "only a store that has to know asks for rewards");
        expect(is_there(id), "only a finished rollout has a reward");
        Draw draw(correct_stream_, id);
        return draw.uniform() < correct_probability;
    }
    void update(std::int32_t version, std::span<const std::uint64_t> batch) override {
        expect(version == versions_made && updates_begun == versions_made, "updates are consecutive");
        expect(static_cast<std::int64_t>(batch.size()) == config_.trainers.batch, "a batch is complete");
        ++updates_begun;
        std::map<std::uint64_t, int> in_batch;
        for (const std::uint64_t id : batch) {
            expect(is_there(id), "only a finished rollout that has not left is used");
            staleness += version - rollouts[id].began_with;
            first_uses += rollouts[id].uses++ == 0 ? 1 : 0;
            distinct_in_batches += ++in_batch[id] == 1 ? 1 : 0;
        }
    }
    bool updated(std::int32_t version, const ComputeSpent& so_far) override {
        expect(version == ++versions_made && updates_begun == versions_made, "an update ends after it has begun");
        spent.push_back(so_far);
        return version != end_at_;
    }
    void forget(std::uint64_t id) override {
        expect(is_there(id), "only a finished rollout leaves, and once");
        rollouts[id].forgotten = true;
        ++forgotten;
        const std::size_t uses = rollouts[id].uses;
        uses_of_forgotten.resize(std::max(uses_of_forgotten.size(), uses + 1));
        ++uses_of_forgotten[uses];
    }
    void keep(std::span<const std::int32_t> versions) override {
        expect(std::ranges::adjacent_find(versions, std::greater_equal<>{}) == versions.end(), "versions ascend");
        // A version is published when its update is done, just before updated() says so.
        const std::int32_t newest_made = updates_begun > versions_made ? versions_made + 1 : versions_made;
        for (const std::int32_t version : versions) {
            expect(is_kept(version) || version == newest_made, "a version that was given up is not asked for again");
        }
        expect(versions.back() >= newest_, "the newest version is always kept");
        // One that it has and one that it receives for each worker, and the newest.
        expect(static_cast<std::int64_t>(versions.size()) <= 2 * config_.workers.count + 1, "no version too many");
        newest_ = versions.back();
        kept_.assign(versions.begin(), versions.end());
        most_kept = std::max(most_kept, kept_.size());
        keeps_of_one += kept_.size() == 1 ? 1 : 0;
    }

    double correct_probability;
    std::string first_violation;
    std::vector<Entry> rollouts;  ///< by id
    std::vector<ComputeSpent> spent;
    std::vector<std::uint64_t> uses_of_forgotten;  ///< [uses]: rollouts
    std::int32_t versions_made = 0;
    std::int32_t updates_begun = 0;
    std::int64_t finished = 0;
    std::int64_t forgotten = 0;
    std::int64_t staleness = 0;
    std::int64_t first_uses = 0;
    std::int64_t distinct_in_batches = 0;
    std::int64_t switches = 0;
    std::int64_t switches_midway = 0;
    std::size_t most_kept = 0;
    int keeps_of_one = 0;  ///< times at which a single version was left

   private:
    void expect(bool holds, const std::string& fact) {
        if (!holds && first_violation.empty()) {
            first_violation = "after " + std::to_string(versions_made) + " updates it does not hold that " + fact;
        }
    }
    bool is_kept(std::int32_t version) const { return std::ranges::find(kept_, version) != kept_.end(); }
    bool is_there(std::uint64_t id) const { return rollouts.at(id).finished && !rollouts[id].forgotten; }

    PipelineConfig config_;
    std::int32_t end_at_;
    RandomStream correct_stream_;
    std::vector<std::int32_t> kept_;
    std::int32_t newest_ = 0;
};

void check_same(const UpdateRecord& a, const UpdateRecord& b) {
    CHECK(a.at == b.at);
    CHECK(a.samples == b.samples);
    CHECK(a.staleness == b.staleness);
    CHECK(a.staleness_squared == b.staleness_squared);
    CHECK(a.unique_samples == b.unique_samples);
    CHECK(a.new_samples == b.new_samples);
    CHECK(a.last_use_steps == b.last_use_steps);
    CHECK(a.tokens == b.tokens);
    CHECK(a.relative_variance == b.relative_variance);
    CHECK(a.dropped == b.dropped);
    CHECK(a.generated == b.generated);
    CHECK((a.worker_ns == b.worker_ns));
    CHECK((a.trainer_ns == b.trainer_ns));
}

double busy_s(const UpdateRecord& record) {
    return static_cast<double>(record.worker_ns[static_cast<std::size_t>(WorkerState::busy)]) * 1e-9;
}

using Written = std::vector<std::pair<RolloutIndex, double>>;

Written written(const InferenceWorker& worker, std::int64_t now_ns) {
    Written result;
    for (const auto& [rollout, share] : worker.progress({now_ns})) {
        result.emplace_back(rollout, share);
    }
    std::ranges::sort(result);
    return result;
}

}  // namespace

TEST_CASE("every kind of pipeline keeps the learner's contract, and its counts are the recorder's") {
    std::int64_t switches_midway = 0;
    for (const NamedPipeline& sample : sample_pipelines()) {
        INFO(sample.name);
        Ledger ledger(sample.config);
        Pipeline pipeline(sample.config, seed, 0, &ledger);
        constexpr std::int64_t updates = 200;
        REQUIRE(pipeline.run(updates));
        const std::size_t living = pipeline.living_rollouts();
        const ReplicationRecord record = pipeline.take_record();
        const UpdateRecord& end = record.updates.back();
        CHECK(ledger.first_violation == "");

        CHECK(ledger.versions_made == updates);
        CHECK(ledger.updates_begun == updates);
        CHECK(ledger.finished == end.generated);
        CHECK(ledger.rollouts.size() - static_cast<std::size_t>(ledger.forgotten) == living);
        CHECK(ledger.staleness == end.staleness);
        CHECK(ledger.first_uses == end.new_samples);
        CHECK(ledger.distinct_in_batches == end.unique_samples);
        CHECK(ledger.uses_of_forgotten == record.replay_count.counts());
        CHECK((ledger.switches > 0) == (sample.config.weight_sync.in_flight == InFlight::in_place));
        switches_midway += ledger.switches_midway;

        REQUIRE(ledger.spent.size() == record.updates.size());
        for (std::size_t u = 0; u < ledger.spent.size(); ++u) {
            CHECK(ledger.spent[u].at == record.updates[u].at);
            CHECK(ledger.spent[u].worker_active_gpu_s == busy_s(record.updates[u]));
        }
        const auto gpus = static_cast<double>(sample.config.workers.count + sample.config.trainers.count);
        CHECK(ledger.spent.back().reserved_gpu_s == doctest::Approx(gpus * seconds(end.at)));
        CHECK(
            ledger.spent.back().trainer_active_gpu_s ==
            doctest::Approx(static_cast<double>(end.trainer_ns[static_cast<std::size_t>(TrainerState::busy)]) * 1e-9));
    }
    CHECK(switches_midway > 1000);
}

TEST_CASE("a learner that does nothing leaves the timeline as it is") {
    for (const NamedPipeline& sample : sample_pipelines()) {
        INFO(sample.name);
        Ledger ledger(sample.config);
        Pipeline with(sample.config, seed, 0, &ledger);
        Pipeline without(sample.config, seed, 0);
        REQUIRE(with.run(200));
        REQUIRE(without.run(200));
        CHECK(with.living_rollouts() == without.living_rollouts());
        const ReplicationRecord a = with.take_record();
        const ReplicationRecord b = without.take_record();
        CHECK(a.events == b.events);
        CHECK(a.order_digest == b.order_digest);
        CHECK(a.replay_count.counts() == b.replay_count.counts());
        CHECK(a.staleness.counts() == b.staleness.counts());
        for (const std::size_t update : {std::size_t{0}, std::size_t{99}, std::size_t{199}}) {
            check_same(a.updates[update], b.updates[update]);
        }
    }
}

TEST_CASE("a learner that says so ends the run, and no update begins after it") {
    for (const NamedPipeline& sample : sample_pipelines()) {
        INFO(sample.name);
        Ledger ledger(sample.config, 37);
        Pipeline ended(sample.config, seed, 0, &ledger);
        CHECK(ended.run(200));
        CHECK(ended.version() == 37);
        CHECK(ledger.updates_begun == 37);
        CHECK(ledger.first_violation == "");
        const ReplicationRecord record = ended.take_record();
        REQUIRE(record.updates.size() == 37);

        Pipeline whole(sample.config, seed, 0);
        whole.run(200);
        check_same(record.updates.back(), whole.take_record().updates[36]);
    }
}

TEST_CASE("slow transfers of different lengths keep several versions in use at once, fast ones two at most") {
    PipelineConfig config = first_order_pipeline(5.28, 6, 2);
    config.weight_sync.transfer_s = Distribution::uniform(1.0, 200.0);  // an update takes 30 s
    Ledger slow(config);
    Pipeline(config, seed, 0, &slow).run(100);
    CHECK(slow.most_kept >= 5);
    config.weight_sync.transfer_s = Distribution::constant(1.0);
    Ledger fast(config);
    Pipeline(config, seed, 0, &fast).run(100);
    CHECK(fast.most_kept == 2);
    CHECK(fast.keeps_of_one == 100);  // versions 0 to 99, each once all workers have it
}

TEST_CASE("versions in use are those that workers have, those on their way, and the newest") {
    using Versions = std::vector<std::int32_t>;
    WeightSync sync({.transfer_s = Distribution::constant(1.0)}, 2, seed, 0);
    CHECK(sync.versions_in_use() == Versions{0});
    sync.publish(1, 0);
    sync.begin_transfer(0);
    CHECK(sync.versions_in_use() == Versions{0, 1});
    sync.publish(2, 0);
    CHECK(!sync.begin_transfer(0));  // one at a time
    sync.begin_transfer(1);
    CHECK(sync.versions_in_use() == Versions{0, 1, 2});
    sync.deliver(0);
    sync.publish(3, 0);
    sync.begin_transfer(0);
    CHECK(sync.versions_in_use() == Versions{0, 1, 2, 3});
    sync.deliver(1);
    CHECK(sync.versions_in_use() == Versions{1, 2, 3});
    sync.deliver(0);
    CHECK(sync.versions_in_use() == Versions{2, 3});
    sync.begin_transfer(1);
    sync.deliver(1);
    CHECK(sync.versions_in_use() == Versions{3});
}

TEST_CASE("a batch that waits for the rare correct rollouts of a learner is not taken for one that never fills") {
    PipelineConfig config = first_order_pipeline(1.0, 5, 3);
    config.groups.size = 1;
    config.trainers.batch = 30;
    config.store = ReplayBufferConfig{
        .capacity = 40, .sampling = Sampling::uniform_without_replacement, .positive_bias_delta = 0.5};
    config.reward.emplace().correct_probability = 0.5;  // what a pipeline without a learner would draw
    Ledger ledger(config);
    ledger.correct_probability = 1.0 / 2000.0;
    CHECK(Pipeline(config, seed, 0, &ledger).run(1));
    CHECK(ledger.finished > 15'000);  // ten have to be correct
    CHECK(ledger.first_violation == "");
}

TEST_CASE("a worker under the step law knows how much of each rollout it has written") {
    // Steps of n sequences with K tokens take 10 + 5 n + K ns, and 3 ns more for each token of a prompt.
    InferenceWorker worker({10.0, 5.0, 1.0, 3.0}, 3, std::nullopt);
    std::vector<RolloutIndex> finished;
    CHECK(written(worker, 0).empty());
    worker.join({0}, 7, 2, 4, 4);  // alone its steps end at 15 + 2 + 6 = 23, 41, 60, 80
    CHECK(written(worker, 0) == Written{{7, 0.0}});
    CHECK(written(worker, 22) == Written{{7, 0.0}});
    CHECK(written(worker, 23) == Written{{7, 0.25}});
    CHECK(written(worker, 40) == Written{{7, 0.25}});
    CHECK(written(worker, 41) == Written{{7, 0.5}});
    worker.join({45}, 9, 0, 2, 2);  // waits for the end of the third step
    CHECK(written(worker, 50) == Written{{7, 0.5}, {9, 0.0}});
    CHECK(written(worker, 60) == Written{{7, 0.75}, {9, 0.0}});
    worker.change_batch({60}, finished);
    CHECK(finished.empty());
    CHECK(written(worker, 60) == Written{{7, 0.75}, {9, 0.0}});
    worker.pause({70});  // 10 ns into a step of 10 + 10 + 5
    CHECK(written(worker, 99) == Written{{7, 0.75}, {9, 0.0}});
    worker.resume({100});
    CHECK(written(worker, 114) == Written{{7, 0.75}, {9, 0.0}});
    // The first has its last token, whether or not somebody has fetched it.
    CHECK(written(worker, 115) == Written{{9, 0.5}});
    worker.change_batch({115}, finished);
    CHECK(finished == std::vector<RolloutIndex>{7});
    CHECK(written(worker, 115) == Written{{9, 0.5}});
}

TEST_CASE("a worker under the first-order law shares its GPU, and shares written grow with the work done") {
    InferenceWorker worker(StepTiming{.per_sequence_ns = 1.0}, 2, std::nullopt);
    std::vector<RolloutIndex> finished;
    worker.join({0}, 1, 0, 1, 30);
    worker.join({0}, 2, 0, 1, 60);
    CHECK(written(worker, 20) == Written{{1, 10.0 / 30.0}, {2, 10.0 / 60.0}});
    CHECK(written(worker, 21) == Written{{1, 10.0 / 30.0}, {2, 10.0 / 60.0}});
    CHECK(written(worker, 60) == Written{{2, 0.5}});
    worker.change_batch({60}, finished);
    CHECK(written(worker, 75) == Written{{2, 0.75}});
    worker.pause({75});
    worker.resume({1000});
    CHECK(written(worker, 1014) == Written{{2, 59.0 / 60.0}});
    CHECK(written(worker, 1015).empty());
}
