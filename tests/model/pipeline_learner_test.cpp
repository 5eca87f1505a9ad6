// A learner inside a pipeline against bookkeeping that has no timeline, and against itself.
#include "model/pipeline_learner.h"

#include <doctest/doctest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "model/learn.h"
#include "sim/engine/random.h"
#include "tests/model/pipeline_learners.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr std::uint64_t pipeline_seed = 5;

/// Workers and trainers take turns: each update waits for `fresh` rollouts of the version before it. All rollouts take
/// the same time, so groups enter the store in the order in which they began.
PipelineConfig taking_turns(std::int64_t batch, std::int64_t fresh) {
    PipelineConfig config = tiny_pipeline();
    config.workers.count = 2;
    config.workers.slots = batch;
    config.workers.service = FirstOrderService{Distribution::constant(1.0)};
    config.trainers.batch = batch;
    config.trainers.fresh_per_update = fresh;
    config.admission = AdmissionConfig{.steps_ahead = 0, .rollouts_per_update = fresh};
    return config;
}

void check_same(const Evaluation& a, const Evaluation& b) {
    CHECK(a.pass_at_1 == b.pass_at_1);
    CHECK(a.pass_at_4 == b.pass_at_4);
    CHECK(a.pass_at_16 == b.pass_at_16);
    CHECK(a.greedy == b.greedy);
    CHECK(a.entropy == b.entropy);
    CHECK(a.answer_tokens == b.answer_tokens);
}

void check_same(const UpdateStatistics& a, const UpdateStatistics& b) {
    CHECK(a.trained_sequences == b.trained_sequences);
    CHECK(a.trained_tokens == b.trained_tokens);
    CHECK(a.mean_abs_ratio_minus_1 == b.mean_abs_ratio_minus_1);
    CHECK(a.clipped_fraction == b.clipped_fraction);
    CHECK(a.ess_token == b.ess_token);
    CHECK(a.ess_sequence == b.ess_sequence);
    CHECK(a.entropy == b.entropy);
    CHECK(a.log_probability == b.log_probability);
    CHECK(a.gradient_norm == b.gradient_norm);
}

/// Replica `s` of one curve is replica `t` of the other.
void check_same_curve(const std::vector<CurvePoint>& a, std::size_t s, const std::vector<CurvePoint>& b,
                      std::size_t t) {
    REQUIRE(a.size() == b.size());
    REQUIRE(a.size() > 3);
    for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK(a[i].update == b[i].update);
        CHECK(a[i].units == b[i].units);
        CHECK(a[i].at_s == b[i].at_s);
        CHECK(a[i].active_gpu_s == b[i].active_gpu_s);
        CHECK(a[i].reserved_gpu_s == b[i].reserved_gpu_s);
        CHECK(a[i].staleness == b[i].staleness);
        CHECK(a[i].replay == b[i].replay);
        check_same(a[i].evaluation[s], b[i].evaluation[t]);
        check_same(a[i].statistics[s], b[i].statistics[t]);
    }
}

PipelineConfig positive_bias_pipeline() {
    PipelineConfig config = tiny_pipeline();
    std::get<ReplayBufferConfig>(config.store).positive_bias_delta = 0.5;
    config.reward = RewardConfig{Distribution::exponential(0.5), 2, 0.5};
    return config;
}

}  // namespace

// ---- against bookkeeping without a timeline -------------------------------------------------------------------------

TEST_CASE("with a buffer, workers and trainers that take turns are generate, insert, sample, update in a loop") {
    constexpr std::int64_t batch = 16;
    constexpr std::int64_t fresh = 8;
    constexpr std::size_t capacity = 24;
    constexpr std::int32_t updates = 40;
    PipelineConfig config = taking_turns(batch, fresh);
    config.store = ReplayBufferConfig{.capacity = capacity};
    const auto backend = make_cpu_backend(1);
    auto learner = tiny_learner(*backend, config, updates);
    Watched watched(learner);
    Pipeline(config, pipeline_seed, 0, &watched).run(updates);

    auto reference = tiny_task_learner(*backend);
    const RandomStream sampling(pipeline_seed, 0, Purpose::batch_sampling);
    std::deque<std::pair<std::uint64_t, TaskRollout>> buffer;
    std::uint64_t next_id = 0;
    for (std::int32_t version = 0; version < updates; ++version) {
        const std::int64_t groups = (version == 0 ? batch : fresh) / group_size;  // the first batch has to fill
        for (TaskRollout& rollout : reference.generate_next(reference.policy(), static_cast<int>(groups), group_size)) {
            buffer.emplace_back(next_id++, std::move(rollout));
        }
        while (buffer.size() > capacity) {
            buffer.pop_front();
        }
        Draw draw(sampling, static_cast<std::uint64_t>(version));
        std::vector<std::uint64_t> ids;
        std::vector<double> rewards;
        std::vector<const TaskRollout*> texts;
        for (std::int64_t i = 0; i < batch; ++i) {
            const auto& [id, text] = buffer[draw.below(buffer.size())];
            ids.push_back(id);
            rewards.push_back(text.reward[0]);
            texts.push_back(&text);
        }
        const auto place = static_cast<std::size_t>(version);
        CHECK(watched.batches[place] == ids);
        CHECK(watched.rewards[place] == rewards);
        reference.update(texts);
    }
    CHECK(weights_hash(learner.learner()) == weights_hash(reference));
    CHECK(learner.curve().back().update == updates);
    check_same(learner.curve().back().evaluation[0], reference.evaluate(reference.policy())[0]);
    CHECK(learner.curve().back().staleness == doctest::Approx(1.0).epsilon(0.1));  // of a buffer of 3 updates
    CHECK(learner.curve().back().replay == doctest::Approx(batch * updates / (batch + fresh * (updates - 1.0))));
}

TEST_CASE("without a buffer, workers and trainers that take turns are `millrace learn`") {
    PipelineConfig config = taking_turns(16, 0);
    config.admission->rollouts_per_update = 16;
    config.store = TransferQueueConfig{.capacity = 16};
    const auto backend = make_cpu_backend(1);
    auto learner = tiny_learner(*backend, config, 40);
    Pipeline(config, pipeline_seed, 0, &learner).run(40);
    const LearnResult reference = learn(*backend, {.learner = tiny_settings(),
                                                   .updates = 40,
                                                   .batch = 16,
                                                   .group_size = group_size,
                                                   .seeds = {1},
                                                   .resume = {},
                                                   .checkpoint = {}});
    CHECK(hash_text(weights_hash(learner.learner())) == reference.final_hash);
    CHECK(reference.final_hash != reference.theta_0_hash);
    CHECK(learner.curve().back().staleness == 0.0);
    CHECK(learner.curve().back().replay == 1.0);
}

TEST_CASE("one step off, each batch is written by the version before the newest, however long its rollouts take") {
    constexpr std::size_t batch = 16;
    constexpr std::size_t updates = 30;
    PipelineConfig config = taking_turns(batch, 0);
    config.workers.service = FirstOrderService{Distribution::lognormal(0.5, 1.0)};
    config.admission = AdmissionConfig{.steps_ahead = 1, .rollouts_per_update = batch};
    config.store = TransferQueueConfig{.capacity = 2 * batch, .order = QueueOrder::as_started};
    const auto backend = make_reference_backend(1);
    auto learner = tiny_learner(*backend, config, updates);
    Watched watched(learner);
    Pipeline(config, pipeline_seed, 0, &watched).run(updates);

    auto reference = tiny_task_learner(*backend);
    auto before = reference.snapshot();
    for (std::size_t update = 0; update < updates; ++update) {
        std::vector<TaskRollout> rollouts = reference.generate_next(*before, batch / group_size, group_size);
        before = reference.snapshot();
        CHECK(watched.batches[update] == ids_from(update * batch, batch));
        for (std::size_t i = 0; i < batch; ++i) {
            CHECK(watched.rewards[update][i] == rollouts[i].reward[0]);
        }
        reference.update(pointers_to(rollouts));
    }
    CHECK(weights_hash(learner.learner()) == weights_hash(reference));
    CHECK(learner.curve().back().staleness == doctest::Approx((updates - 1.0) / updates));
}

TEST_CASE("when rollouts are written, and how many at once, changes nothing that is learnt") {
    const auto backend = make_reference_backend(1);
    PipelineConfig in_place_at_once = in_place_pipeline();
    in_place_at_once.weight_sync.transfer_s = Distribution::constant(0.0);
    PipelineConfig slow_transfers = tiny_pipeline();
    slow_transfers.weight_sync = {.every = 2, .transfer_s = Distribution::uniform(0.1, 30.0)};
    for (const PipelineConfig& config :
         {in_place_pipeline(), in_place_at_once, slow_transfers, dropping_pipeline(), positive_bias_pipeline()}) {
        constexpr std::int64_t updates = 25;
        const bool switches = config.weight_sync.in_flight == InFlight::in_place;
        auto learner = tiny_learner(*backend, config, updates);
        Watched watched(learner, switches);
        Pipeline lazy(config, pipeline_seed, 0, &watched);
        REQUIRE(lazy.run(updates));
        EagerLearner eager_learner(*backend);
        Pipeline eager(config, pipeline_seed, 0, &eager_learner);
        REQUIRE(eager.run(updates));

        CHECK(weights_hash(learner.learner()) == weights_hash(eager_learner.learner()));
        CHECK(watched.rewards == eager_learner.rewards);
        CHECK(lazy.take_record().order_digest == eager.take_record().order_digest);
        CHECK((watched.of_several > 50) == switches);
    }
}

// ---- against itself -------------------------------------------------------------------------------------------------

TEST_CASE("curves and weights are the same bytes in two runs and for any number of threads") {
    for (const PipelineConfig& config : {in_place_pipeline(), positive_bias_pipeline()}) {
        std::vector<CurvePoint> curve;
        std::uint64_t hash = 0;
        for (const int threads : {1, 1, 2, 3}) {
            const auto backend = make_cpu_backend(threads);
            auto learner = tiny_learner(*backend, config, 60);
            learner.evaluate_start();
            Pipeline(config, pipeline_seed, 0, &learner).run(60);
            if (curve.empty()) {
                curve = learner.curve();
                hash = weights_hash(learner.learner());
            }
            check_same_curve(learner.curve(), 0, curve, 0);
            CHECK(weights_hash(learner.learner()) == hash);
        }
        CHECK(curve.front().update == 0);
        CHECK(curve.back().update == 60);
    }
}

TEST_CASE("two replicas on one timeline are two learners with their seeds, bit for bit") {
    for (const PipelineConfig& config : {in_place_pipeline(), dropping_pipeline()}) {
        const auto backend = make_cpu_backend(2);
        auto both = tiny_learner(*backend, config, 60, {11, 12});
        Pipeline(config, pipeline_seed, 0, &both).run(60);
        const std::vector<float> weights = both.learner().policy().download();
        const std::size_t parameters = weights.size() / 2;
        for (const std::size_t s : {std::size_t{0}, std::size_t{1}}) {
            auto alone = tiny_learner(*backend, config, 60, {11 + s});
            Pipeline(config, pipeline_seed, 0, &alone).run(60);
            const auto part = std::span(weights).subspan(s * parameters, parameters);
            CHECK(std::ranges::equal(alone.learner().policy().download(), part));
            check_same_curve(alone.curve(), 0, both.curve(), s);
        }
        CHECK(!std::ranges::equal(std::span(weights).first(parameters), std::span(weights).subspan(parameters)));
    }
}

TEST_CASE("on a long run no version is held that nobody needs, and no rollout that has left") {
    for (const InFlight in_flight : {InFlight::between_rollouts, InFlight::in_place}) {
        for (const double transfer_s : {0.0, 40.0}) {  // an update takes 4 s
            PipelineConfig config = tiny_pipeline();
            config.workers.count = 4;
            config.weight_sync.in_flight = in_flight;
            config.weight_sync.transfer_s = Distribution::uniform(0.05 * transfer_s, transfer_s);
            const auto backend = make_cpu_backend(1);
            auto learner = tiny_learner(*backend, config, 300);
            Watched watched(learner, in_flight == InFlight::in_place);
            Pipeline pipeline(config, pipeline_seed, 0, &watched);
            REQUIRE(pipeline.run(300));
            CHECK(watched.too_many_versions == 0);
            CHECK(watched.other_rollouts == 0);
            CHECK(learner.rollouts_held() == pipeline.living_rollouts());
            CHECK(watched.most_versions >= (transfer_s > 0.0 ? 4 : 2));
            CHECK(watched.most_versions < 20);  // whatever the number of updates
        }
    }
}

TEST_CASE("a store that keeps correct rollouts hears the task's verdict") {
    const auto backend = make_cpu_backend(1);
    const PipelineConfig config = positive_bias_pipeline();
    auto learner = tiny_learner(*backend, config, 60);
    Watched watched(learner);
    Pipeline(config, pipeline_seed, 0, &watched).run(60);
    CHECK(watched.wrong_verdicts == 0);
    CHECK(watched.right_answers > 50);
    CHECK(watched.wrong_answers > 50);
    // Replicas would disagree about what to keep.
    auto two = tiny_learner(*backend, config, 60, {1, 2});
    CHECK_THROWS_AS(Pipeline(config, pipeline_seed, 0, &two).run(60), std::logic_error);
}
