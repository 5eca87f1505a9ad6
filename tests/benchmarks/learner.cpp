// The learner on the CPU against PyTorch: updates, generation with a cache, and whole steps of reinforcement learning.
//
// Peer and learner take turns in short slices, so that whatever else runs on the machine hits both, and each side is
// judged by its fastest slice. One thread is raced by CPU time; two threads are raced by wall time against two peers
// that each do all the work of one (PyTorch's own second thread is worth less than a second process at these sizes).
// Both sides start from the same weights and the same batch, and the race is off unless both find the same gradient.
//
// Counters: `ratio`, times faster than PyTorch; `median_ratio`, the median over pairs of neighbouring slices, which
// tells by its distance from `ratio` how quiet the machine was; `tokens_per_second`, input tokens of an update or drawn
// tokens of a generation; `peak_fraction`, of what the cores could do if they did nothing but multiply and add in
// registers. What must be computed per token: 2 FLOP per number in a matrix and 4 D per key that is looked at and
// layer; an update takes three times that. Time goes where matrices are narrow: products with an inner dimension of 32
// spend as much on loading and storing as on arithmetic, and everything between products (norms, softmax, ReLU,
// residuals) is memory traffic of 15 to 20 arrays of the size of x per layer.
//
// The peer is /usr/bin/python3, or what MILLRACE_PEER_PYTHON names.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/backends.h"
#include "model/generation.h"
#include "model/task_learner.h"
#include "model/training.h"
#include "model/warm_start.h"
#include "tests/benchmarks/peak_speed.h"
#include "tests/benchmarks/peer_process.h"
#include "tests/model/torch_reference.h"

namespace millrace {
namespace {

struct Case {
    std::string name;
    ModelShape shape;  ///< the context is one more than the rows of an update
    int prompt = 0;    ///< tokens
    int sequences = 0;
    int slices = 100;
    static constexpr int copies = 8;  ///< answers to a prompt

    int rows() const { return shape.context - 1; }
    int answer() const { return shape.context - prompt; }
};

const std::vector<Case> cases{
    {"width:32/batch:64/rows:17", {2, 32, 2, 128, 20, 18}, 9, 64},
    {"width:64/batch:64/rows:17", {2, 64, 4, 256, 20, 18}, 9, 64},
    {"width:64/batch:256/rows:16", {2, 64, 4, 256, 20, 17}, 8, 256},
    {"width:128/batch:256/rows:24", {4, 128, 4, 512, 20, 25}, 8, 256, 30},
};

/// Wall time, or the CPU time of all threads of this process.
double seconds(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// ---- what must be computed ------------------------------------------------------------------------------------------

/// Forward, of `count` tokens that look at `keys` keys each.
double forward_flop(const ModelShape& shape, double count, double keys) {
    const double d = shape.width;
    const double weights = shape.layers * (4.0 * d * d + 2.0 * d * shape.mlp_width);
    return count * (2.0 * weights + 4.0 * d * keys * shape.layers);
}
double head_flop(const ModelShape& shape, double count) {
    return count * 2.0 * shape.width * shape.vocabulary;
}

double update_flop(const Case& c) {
    const double tokens = static_cast<double>(c.sequences) * c.rows();
    return 3.0 * (forward_flop(c.shape, tokens, 0.5 * (c.rows() + 1)) + head_flop(c.shape, tokens));
}

double generation_flop(const Case& c) {
    const double prompts = c.sequences / static_cast<double>(Case::copies);
    const double drawn = static_cast<double>(c.sequences) * c.answer();
    // Drawing token t takes a look at t keys; the prompt but its last token is computed once for all copies.
    return forward_flop(c.shape, prompts * (c.prompt - 1), 0.5 * c.prompt) +
           forward_flop(c.shape, drawn, c.prompt + 0.5 * (c.answer() - 1)) + head_flop(c.shape, drawn);
}

// ---- our side -------------------------------------------------------------------------------------------------------

constexpr double weight_scale = 0.1;  // as in torch_cpu_peer.py, like the streams and rules below
constexpr std::uint32_t tokens_stream = 2;
constexpr std::uint32_t advantage_stream = 3;
constexpr double learning_rate = 1e-6;

Token recipe_token(const ModelShape& shape, std::size_t index) {
    const double number = recipe_number(tokens_stream, static_cast<std::uint32_t>(index));
    return static_cast<Token>((number + 1.0) / 2.0 * shape.vocabulary);
}

/// Updates by the clipped objective on one batch of full-length answers.
class Updates {
   public:
    Updates(const Case& c, int threads)
        : backend_(make_cpu_backend(threads)), trainer_(*backend_, c.shape, 1, c.prompt, c.shape.context) {
        trainer_.start(recipe_weights<float>(c.shape, weight_scale));
        const auto answer = static_cast<std::size_t>(c.answer());
        std::size_t index = 0;
        for (int b = 0; b < c.sequences; ++b) {
            TaskRollout rollout;
            rollout.policy_version = -1;  // older than update 0, or its ratios would be taken for 1
            for (int t = 0; t < c.shape.context; ++t) {
                rollout.tokens.push_back(recipe_token(c.shape, index++));
            }
            rollout.answer_tokens = {c.answer()};
            rollout.log_probability.assign(answer, -std::log(static_cast<double>(c.shape.vocabulary)));
            rollout.advantage = {recipe_number(advantage_stream, static_cast<std::uint32_t>(b))};
            rollouts_.push_back(rollout);
        }
        for (const TaskRollout& rollout : rollouts_) {
            batch_.push_back(&rollout);
        }
    }
    /// The norm of the gradient.
    double operator()() {
        return trainer_.update(batch_, ObjectiveSettings{}, OptimizerSettings{}, learning_rate)[0].gradient_norm;
    }

   private:
    std::unique_ptr<Backend<Float32>> backend_;
    Trainer<Float32> trainer_;
    std::vector<TaskRollout> rollouts_;
    std::vector<const TaskRollout*> batch_;
};

/// Answers to recipe prompts.
class Generations {
   public:
    Generations(const Case& c, int threads)
        : backend_(make_cpu_backend(threads)),
          generator_(*backend_, c.shape, c.prompt, c.answer()),
          weights_(*backend_, c.shape, 1),
          prompts_(c.sequences / Case::copies) {
        weights_.upload(recipe_weights<float>(c.shape, weight_scale));
        for (std::size_t i = 0; i < static_cast<std::size_t>(prompts_) * static_cast<std::size_t>(c.prompt); ++i) {
            tokens_.push_back(recipe_token(c.shape, i));
        }
        ids_.resize(static_cast<std::size_t>(c.sequences));
    }
    /// The mean log-probability of the drawn tokens.
    double operator()() {
        for (std::uint64_t& id : ids_) {
            id = next_id_++;
        }
        const auto result = generator_.generate(weights_, {.prompts = prompts_,
                                                           .copies = Case::copies,
                                                           .prompt_tokens = tokens_,
                                                           .seeds = seeds_,
                                                           .sequence_ids = ids_});
        double sum = 0.0;
        double count = 0.0;
        const std::size_t room = result.log_probability.size() / result.answer_tokens.size();
        for (std::size_t b = 0; b < result.answer_tokens.size(); ++b) {
            for (std::int32_t t = 0; t < result.answer_tokens[b]; ++t) {
                sum += static_cast<double>(result.log_probability[b * room + static_cast<std::size_t>(t)]);
                count += 1.0;
            }
        }
        return sum / count;
    }

   private:
    std::unique_ptr<Backend<Float32>> backend_;
    Generator<Float32> generator_;
    Weights<Float32> weights_;
    int prompts_;
    std::vector<Token> tokens_;
    std::vector<std::uint64_t> seeds_{1};
    std::vector<std::uint64_t> ids_;
    std::uint64_t next_id_ = 0;
};

// ---- the peer's side ------------------------------------------------------------------------------------------------

struct Slice {
    double wall = 0.0;
    double cpu = 0.0;
    double result = 0.0;
};

class Peers {
   public:
    Peers(const Case& c, int count) {
        const char* python = std::getenv("MILLRACE_PEER_PYTHON");
        std::vector<std::string> command{python != nullptr ? python : "/usr/bin/python3",
                                         std::string(MILLRACE_SOURCE_DIR) + "/tests/benchmarks/torch_cpu_peer.py"};
        const ModelShape& s = c.shape;
        for (const int number :
             {s.layers, s.width, s.heads, s.mlp_width, s.vocabulary, s.context, c.prompt, c.sequences, Case::copies}) {
            command.push_back(std::to_string(number));
        }
        // PyTorch allocates every temporary anew. Unless malloc keeps what was freed (32 MiB is more than any of them),
        // up to half of its time goes into page faults.
        const std::vector<std::pair<std::string, std::string>> environment{
            {"MALLOC_MMAP_THRESHOLD_", "33554432"}, {"MALLOC_TRIM_THRESHOLD_", "4294967296"},
            {"MALLOC_TOP_PAD_", "268435456"},       {"OMP_NUM_THREADS", "1"},
            {"OPENBLAS_NUM_THREADS", "1"},          {"MKL_NUM_THREADS", "1"}};
        try {
            for (int i = 0; i < count; ++i) {
                processes_.push_back(std::make_unique<PeerProcess>(command, environment));
            }
            for (const auto& process : processes_) {
                greeting_ = process->receive();
            }
        } catch (const std::runtime_error& error) {
            greeting_ = std::string("unfit ") + error.what();
        }
    }
    bool ready() const { return greeting_.starts_with("ready "); }
    /// After its first word: what the peer runs on, or why it does not.
    std::string about() const { return greeting_.substr(std::min(greeting_.size(), greeting_.find(' ') + 1)); }

    /// All peers at once; the times are those of the slowest.
    Slice run(const std::string& work, int count) {
        for (const auto& process : processes_) {
            process->send(work + " " + std::to_string(count));
        }
        Slice slowest;
        for (const auto& process : processes_) {
            std::istringstream reply(process->receive());
            Slice slice;
            reply >> slice.wall >> slice.cpu >> slice.result;
            slowest = {std::max(slowest.wall, slice.wall), std::max(slowest.cpu, slice.cpu), slice.result};
        }
        return slowest;
    }

   private:
    std::vector<std::unique_ptr<PeerProcess>> processes_;
    std::string greeting_;
};

// ---- the race -------------------------------------------------------------------------------------------------------

constexpr double slice_seconds = 0.025;

int times_per_slice(double once) {
    return std::clamp(static_cast<int>(slice_seconds / std::max(once, 1e-9)), 1, 1000);
}

struct Race {
    std::string work;        ///< what the peer calls it
    double agreement = 0.0;  ///< how far the two first results may be apart, as a share of the peer's
    double tokens = 0.0;     ///< of one run
    double flop = 0.0;       ///< of one run
    std::function<double()> ours;
};

void race(benchmark::State& state, const Case& c, int threads, const Race& race) {
    Peers peers(c, threads);
    if (!peers.ready()) {
        state.SkipWithError(("no PyTorch to race against: " + peers.about()).c_str());
        return;
    }
    state.SetLabel(peers.about());
    const clockid_t clock = threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    const double expected = peers.run(race.work, 1).result;
    const double found = race.ours();
    if (!(std::abs(found - expected) <= race.agreement * std::abs(expected))) {
        const std::string text =
            "the two sides do not compute the same: " + std::to_string(found) + " against " + std::to_string(expected);
        state.SkipWithError(text.c_str());
        return;
    }

    peers.run(race.work, 3);
    const int peer_count = times_per_slice(peers.run(race.work, 3).wall / 3.0);
    race.ours();
    double begin = seconds(CLOCK_MONOTONIC);
    race.ours();
    const int our_count = times_per_slice(seconds(CLOCK_MONOTONIC) - begin);
    double ours = HUGE_VAL;
    double theirs = HUGE_VAL;
    std::vector<double> ratios;
    for (auto _ : state) {
        const Slice slice = peers.run(race.work, peer_count);
        const double peer_once = (threads == 1 ? slice.cpu : slice.wall / threads) / peer_count;
        begin = seconds(clock);
        for (int i = 0; i < our_count; ++i) {
            race.ours();
        }
        const double once = (seconds(clock) - begin) / our_count;
        ours = std::min(ours, once);
        theirs = std::min(theirs, peer_once);
        ratios.push_back(peer_once / once);
        state.SetIterationTime(once);
    }
    std::ranges::sort(ratios);
    state.counters["ratio"] = theirs / ours;
    state.counters["median_ratio"] = ratios[ratios.size() / 2];
    state.counters["tokens_per_second"] = race.tokens / ours;
    state.counters["peer_tokens_per_second"] = race.tokens / theirs;
    state.counters["best_ms"] = 1e3 * ours;
    state.counters["peak_fraction"] = race.flop / ours / (peak_flop_per_second() * threads);
}

void race_updates(benchmark::State& state, const Case& c, int threads) {
    Updates updates(c, threads);
    race(state, c, threads,
         {"train", 1e-4, static_cast<double>(c.sequences) * c.rows(), update_flop(c), [&] { return updates(); }});
}

void race_generations(benchmark::State& state, const Case& c, int threads) {
    Generations generations(c, threads);
    // Means over different draws: hundreds of tokens whose log-probabilities differ by half a nat.
    race(state, c, threads, {"generate", 0.05, static_cast<double>(c.sequences) * c.answer(), generation_flop(c), [&] {
                                 return generations();
                             }});
}

// ---- whole steps ----------------------------------------------------------------------------------------------------

/// 8 groups of 8 answers to fresh prompts, rewards, advantages, one update: from a policy that is right now and then,
/// as groups without any difference in reward need no update.
void rl_updates(benchmark::State& state, int width, int threads) {
    constexpr int groups = 8;
    constexpr int group_size = 8;
    const auto backend = make_cpu_backend(threads);
    LearnerSettings settings;
    settings.model.width = width;
    settings.model.heads = width / 16;
    settings.model.mlp_width = 4 * width;
    const std::vector<std::uint64_t> seeds{1};
    const auto theta_0 = warm_start(*backend, settings);
    TaskLearner<Float32> learner(*backend, settings, seeds, theta_0.weights);
    double trained = 0.0;
    for (auto _ : state) {
        const std::vector<TaskRollout> rollouts = learner.generate_next(learner.policy(), groups, group_size);
        std::vector<const TaskRollout*> batch;
        for (const TaskRollout& rollout : rollouts) {
            batch.push_back(&rollout);
        }
        trained += learner.update(batch)[0].trained_sequences;
    }
    state.counters["updates_per_second"] =
        benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
    state.counters["trained_fraction"] =
        trained / (static_cast<double>(state.iterations()) * static_cast<double>(groups * group_size));
}

const bool registered = [] {
    for (const int threads : {1, 2}) {
        const std::string on = "/threads:" + std::to_string(threads);
        for (const Case& c : cases) {
            const auto prepared = [&](benchmark::internal::Benchmark* race) {
                race->UseManualTime()->Iterations(c.slices)->Unit(benchmark::kMillisecond);
            };
            prepared(benchmark::RegisterBenchmark(("learner/update/" + c.name + on).c_str(), race_updates, c, threads));
            prepared(benchmark::RegisterBenchmark(("learner/generate/" + c.name + on).c_str(), race_generations, c,
                                                  threads));
        }
        for (const int width : {32, 64}) {
            const std::string name = "learner/rl_update/width:" + std::to_string(width) + on;
            auto* steps = benchmark::RegisterBenchmark(name.c_str(), rl_updates, width, threads);
            steps->Iterations(500)->Unit(benchmark::kMillisecond);
            threads == 1 ? steps->MeasureProcessCPUTime() : steps->UseRealTime();
        }
    }
    return true;
}();

}  // namespace
}  // namespace millrace
