// A run that is interrupted and resumed against the same run in one piece.
#include "model/pipeline_checkpoint.h"

#include <doctest/doctest.h>

#include <atomic>
#include <bit>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/model/pipeline_learners.h"
#include "tests/model/temporary_file.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr std::uint64_t pipeline_seed = 5;
constexpr std::int64_t updates = 24;

using Saved = PipelineCheckpoint<float>;

/// A checkpoint as it lies on the disk: two are alike when these are.
std::string file_of(const Saved& checkpoint) {
    const TemporaryFile file("bytes");
    write_pipeline_checkpoint(file.path(), checkpoint);
    return file.bytes();
}

Saved read(const std::string& bytes) {
    const TemporaryFile file("bytes");
    file.set_bytes(bytes);
    return read_pipeline_checkpoint<float>(file.path());
}

struct Run {
    std::map<std::int32_t, std::string> checkpoints;  ///< by update; the last one has the end's weights and the curve
    std::uint64_t order_digest = 0;
    int evaluations = 0;
};

Run run(const PipelineConfig& config, const std::vector<std::uint64_t>& seeds, int threads,
        const std::optional<std::string>& from = {}) {
    const auto backend = make_cpu_backend(threads);
    auto learner = tiny_learner(*backend, config, updates, seeds);
    Run run;
    learner.on_evaluated = [&](const CurvePoint& point) {
        ++run.evaluations;
        if (point.update > 0) {
            run.checkpoints[point.update] = file_of(learner.save());
        }
    };
    if (from) {
        learner.resume(read(*from));
    } else {
        learner.evaluate_start();
    }
    Pipeline pipeline(config, pipeline_seed, 0, &learner);
    REQUIRE(pipeline.run(updates));
    CHECK(learner.at_end());
    CHECK(!learner.stopped());
    CHECK(learner.rollouts_held() == pipeline.living_rollouts());
    run.order_digest = pipeline.take_record().order_digest;
    return run;
}

PipelineConfig ordered_queue_pipeline() {
    PipelineConfig config = tiny_pipeline();
    config.store = TransferQueueConfig{.capacity = 24, .order = QueueOrder::as_started};
    config.admission = AdmissionConfig{.steps_ahead = 1, .rollouts_per_update = 12};
    return config;
}

PipelineConfig in_place_queue_pipeline() {
    PipelineConfig config = in_place_pipeline();
    config.store = TransferQueueConfig{.capacity = 24, .order = QueueOrder::lifo};
    return config;
}

PipelineConfig slow_transfers_pipeline() {
    PipelineConfig config = tiny_pipeline();
    config.weight_sync = {.every = 2, .transfer_s = Distribution::uniform(0.1, 30.0)};
    return config;
}

PipelineConfig positive_bias_pipeline() {
    PipelineConfig config = tiny_pipeline();
    std::get<ReplayBufferConfig>(config.store).positive_bias_delta = 0.5;
    config.reward = RewardConfig{Distribution::exponential(0.5), 2, 0.5};
    return config;
}

std::string refusal(const std::string& bytes) {
    try {
        read(bytes);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("a run that is resumed at any evaluation goes on as if there had been no interruption, bit for bit") {
    struct Case {
        PipelineConfig config;
        std::vector<std::uint64_t> seeds;
    };
    for (const Case& one :
         {Case{tiny_pipeline(), {1}}, Case{in_place_pipeline(), {11, 12, 13}}, Case{dropping_pipeline(), {11, 12}},
          Case{ordered_queue_pipeline(), {1}}, Case{in_place_queue_pipeline(), {1}},
          Case{slow_transfers_pipeline(), {1, 2}}, Case{positive_bias_pipeline(), {1}}}) {
        const Run whole = run(one.config, one.seeds, 1);
        REQUIRE(whole.checkpoints.size() > 3);
        CHECK(whole.checkpoints.rbegin()->first == updates);
        std::size_t number = 0;
        for (const auto& [update, bytes] : whole.checkpoints) {
            if (number++ % 4 != 0 && update != updates) {
                continue;
            }
            const Run rest = run(one.config, one.seeds, 1 + update % 2, bytes);
            CHECK(rest.order_digest == whole.order_digest);
            // Later checkpoints hold weights, moments, curve, and every rollout that is alive.
            const auto first = whole.checkpoints.upper_bound(update);
            const std::map<std::int32_t, std::string> later(first, whole.checkpoints.end());
            CHECK(rest.checkpoints == later);
            CHECK(rest.evaluations == static_cast<int>(later.size()));
        }
    }
}

TEST_CASE("what a checkpoint has in hand: unwritten rollouts, old versions, verdicts") {
    const Saved in_place = read(run(in_place_pipeline(), {1}, 1).checkpoints.rbegin()->second);
    CHECK(!in_place.pending.empty());
    CHECK(!in_place.open_groups.empty());
    CHECK(in_place.versions.size() > 1);
    CHECK(in_place.learner.counters.rollouts > 0);
    CHECK(in_place.verdicts == 0);
    const Saved biased = read(run(positive_bias_pipeline(), {1}, 1).checkpoints.rbegin()->second);
    CHECK(biased.verdicts > 100);
    std::int64_t right = 0;
    for (const std::uint64_t word : biased.verdict_bits) {
        right += std::popcount(word);
    }
    CHECK(right > 20);
    CHECK(right < biased.verdicts);
}

TEST_CASE("one that is told to stop does so after the next evaluation, and one that only listens at once") {
    const PipelineConfig config = in_place_pipeline();
    const Run whole = run(config, {1}, 1);
    const auto backend = make_cpu_backend(1);
    std::atomic<bool> stop{false};
    std::string kept;
    for (int round = 0; round < 2; ++round) {
        auto learner = tiny_learner(*backend, config, updates, {1}, &stop);
        int evaluations = 0;
        learner.on_evaluated = [&](const CurvePoint& point) {
            if (point.update > 0) {
                kept = file_of(learner.save());
                CHECK(kept == whole.checkpoints.at(point.update));
                stop = ++evaluations == 2;
            }
        };
        if (round == 0) {
            learner.evaluate_start();
        } else {
            learner.resume(read(kept));
            stop = true;
        }
        Pipeline pipeline(config, pipeline_seed, 0, &learner);
        pipeline.run(updates);
        CHECK(learner.stopped());
        CHECK(!learner.at_end());
        CHECK(evaluations == (round == 0 ? 2 : 0));
        CHECK(learner.curve().size() == 3);
    }
    CHECK(run(config, {1}, 1, kept).checkpoints.rbegin()->second == whole.checkpoints.rbegin()->second);
}

TEST_CASE("a checkpoint of another run is refused") {
    const PipelineConfig config = tiny_pipeline();
    const Saved kept = read(run(config, {1}, 1).checkpoints.rbegin()->second);
    const auto backend = make_cpu_backend(1);
    auto replicas = tiny_learner(*backend, config, updates, {1, 2});
    CHECK_THROWS_AS(replicas.resume(kept), std::invalid_argument);
    auto learner = tiny_learner(*backend, config, updates);
    learner.resume(kept);
    CHECK_THROWS_AS(Pipeline(config, pipeline_seed + 1, 0, &learner).run(updates), std::runtime_error);
    auto shorter = tiny_learner(*backend, config, updates - 1);
    shorter.resume(kept);
    CHECK_THROWS_AS(Pipeline(config, pipeline_seed, 0, &shorter).run(updates), std::runtime_error);
}

TEST_CASE("files that are not whole and sound are refused, and the message says why") {
    const std::string good = run(positive_bias_pipeline(), {1}, 1).checkpoints.begin()->second;
    CHECK(refusal(good) == "accepted");
    const auto mentions = [](const std::string& text, const char* part) {
        return text.find(part) != std::string::npos;
    };
    CHECK(mentions(refusal(""), "is no checkpoint of a run with a learner"));
    CHECK(mentions(refusal("{\"name\": \"a scenario, which is no checkpoint\"}"), "is no checkpoint"));
    for (const std::size_t size : {std::size_t{40}, good.size() / 2, good.size() - 1}) {
        CHECK(mentions(refusal(good.substr(0, size)), "is truncated"));
    }
    CHECK(mentions(refusal(good + "x"), "is too long"));
    for (std::size_t place = 24; place < good.size(); place += good.size() / 9) {
        std::string bad = good;
        bad[place] = static_cast<char>(bad[place] ^ 16);
        CHECK(mentions(refusal(bad), "is damaged"));
    }
    std::string newer = good;
    newer[8] = 9;
    CHECK(mentions(refusal(newer), "version 9"));
    const TemporaryFile other("other_kind");
    write_checkpoint(other.path(), read(good).learner);
    CHECK(mentions(refusal(other.bytes()), "is no checkpoint of a run with a learner"));
}
