#include "tools/millrace/warm_start_command.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "model/checkpoint.h"
#include "model/task_learner.h"
#include "model/warm_start.h"
#include "sim/scenario/learn_file.h"
#include "tools/millrace/any_backend.h"
#include "tools/millrace/result_files.h"

namespace millrace {
namespace {

struct Made {
    std::uint64_t hash = 0;
    std::size_t parameters = 0;
    std::int64_t updates = 0;
    double made_s = 0.0;
    Evaluation evaluation;
};

template <typename P>
Made make(Backend<P>& backend, const LearnerSettings& settings, const std::string& output) {
    const auto start = std::chrono::steady_clock::now();
    const WarmStart<typename P::Real> theta_0 = warm_start(backend, settings);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

    const std::array<std::uint64_t, 1> seeds = {1};  // no prompt of training is drawn
    TaskLearner<P> learner(backend, settings, seeds, theta_0.weights);
    Checkpoint<typename P::Real> checkpoint;
    checkpoint.shape = learner.policy().shape();
    checkpoint.task = settings.task;
    checkpoint.theta_0_hash = theta_0.hash;
    checkpoint.generated_tokens = {0};
    checkpoint.trained_tokens = {0};
    checkpoint.weights = theta_0.weights;
    write_checkpoint(output, checkpoint);
    return {theta_0.hash, parameter_count(checkpoint.shape), theta_0.supervised_updates, elapsed.count(),
            learner.evaluate(learner.policy()).front()};
}

}  // namespace

int warm_start_command(const WarmStartOptions& options) {
    const LearnFile file = load_learn_file(options.input.file, options.input.overrides);
    if (file.learner.warm_start.checkpoint) {
        throw UsageError("the warm start of " + options.input.file +
                         " is a checkpoint already; --set 'learner.warm_start={\"kind\": \"supervised\"}' makes one");
    }
    static_cast<void>(ResultFiles("", options.output, options.input.file, {"the learn file", "theta_0"}));
    static_cast<void>(SafeFile(options.output));  // says what is wrong with the path before the work, not after it
    BackendChoice chosen = open_backend(options.backend, options.jobs);
    if (!chosen.remark.empty()) {
        std::cerr << chosen.remark << '\n';
    }
    const Made made = std::visit([&](auto& one) { return make(*one, file.learner, options.output); }, chosen.backend);

    const auto row = [](const char* name, const std::string& value) {
        std::array<char, 128> text{};
        std::snprintf(text.data(), text.size(), "%-24s%s\n", name, value.c_str());
        std::cout << text.data();
    };
    const auto number = [](double value) {
        std::array<char, 32> text{};
        std::snprintf(text.data(), text.size(), "%.3f", value);
        return std::string(text.data());
    };
    std::cout << file.name << ": theta_0 in " << options.output << "\n\n";
    row("hash", hash_text(made.hash));
    row("parameters", std::to_string(made.parameters));
    row("supervised updates", std::to_string(made.updates));
    row("pass@1", number(made.evaluation.pass_at_1));
    row("pass@16", number(made.evaluation.pass_at_16.value_or(0.0)));
    row("greedy", number(made.evaluation.greedy.value_or(0.0)));
    row("entropy (nats/token)", number(made.evaluation.entropy));
    row("seconds", number(made.made_s));
    row("computed on", describe(chosen.backend));
    std::cout.flush();
    if (!std::cout) {
        throw std::runtime_error("could not write the report to standard output");
    }
    return exit_done;
}

}  // namespace millrace
