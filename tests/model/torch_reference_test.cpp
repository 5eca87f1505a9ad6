// Our kernels against PyTorch: the same small model, forward, every objective, all gradients, and five updates.
//
// In double precision both sides differ only by the order of their sums, so 1e-12 of an array's largest number is what
// is asked for. In single precision the yardstick is PyTorch's own: the fixture says how far its float32 is from its
// float64, and ours may be four times as far (16 times the squared error), for sums in another order.
#include <doctest/doctest.h>

#include <map>
#include <memory>

#include "kernels/backends.h"
#include "kernels/cpu/instruction_set.h"
#include "model/training.h"
#include "model/transformer.h"
#include "tests/model/torch_reference.h"

namespace millrace {
namespace {

constexpr double rounding = 1e-12;

const TorchReference& torch() {
    static const TorchReference reference(std::string(MILLRACE_SOURCE_DIR) +
                                          "/tests/model/fixtures/torch_reference.json");
    return reference;
}

int prompt_tokens() {
    return torch().document["first_answer_row"].get<int>() + 1;
}

template <typename Number>
std::vector<double> as_doubles(const std::vector<Number>& numbers) {
    return {numbers.begin(), numbers.end()};
}

template <typename Number>
std::vector<Number> numbers_of(const nlohmann::json& node) {
    const std::vector<double> numbers = flat(node);
    std::vector<Number> result;
    for (const double number : numbers) {
        result.push_back(static_cast<Number>(number));
    }
    return result;
}

/// One array of a flat [P].
template <typename Real>
std::vector<double> part_of(const std::vector<Real>& all, const NamedParameter& parameter) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(parameter.place);
    return {begin, begin + static_cast<std::ptrdiff_t>(parameter.size())};
}

const std::map<std::string, ObjectiveRule> rules{
    {"supervised", {.kind = ObjectiveKind::supervised}},
    {"grpo", {.kind = ObjectiveKind::grpo}},
    {"grpo_clip_higher", {.kind = ObjectiveKind::grpo, .clip_low = 0.1, .clip_high = 0.28}},
    {"grpo_of_sequences", {.kind = ObjectiveKind::grpo, .ratio = RatioKind::sequence}},
    {"reinforce", {.kind = ObjectiveKind::reinforce}},
    {"asymre", {.kind = ObjectiveKind::asymre}},
};

// ---- the operations, called one by one ------------------------------------------------------------------------------

/// What one forward and backward pass over the fixture's batch gives.
struct Pass {
    std::vector<double> logits;
    std::vector<double> log_probability;
    std::vector<double> entropy;
    std::vector<double> weight;
    std::vector<double> statistics;
    std::vector<double> gradient;  ///< [P]
    double norm = 0.0;
};

template <typename P, typename T>
BackendArray<P, T> uploaded(Backend<P>& backend, const std::vector<T>& numbers) {
    BackendArray<P, T> array(backend, numbers.size());
    array.upload(numbers);
    return array;
}

template <typename P>
std::vector<double> downloaded(Backend<P>& backend, const typename P::Real* numbers, std::size_t count) {
    std::vector<typename P::Real> host(count);
    backend.download(host.data(), numbers, count * sizeof(typename P::Real));
    return as_doubles(host);
}

template <typename P>
Pass run_pass(Backend<P>& backend, const ObjectiveRule& rule) {
    using Real = typename P::Real;
    const nlohmann::json& document = torch().document;
    const Transformer<P> transformer(backend, torch().shape);
    const std::size_t parameters = transformer.places().size;
    const auto weights = uploaded<P>(backend, torch().weights<Real>());
    const auto tokens = uploaded<P>(backend, numbers_of<Token>(document["tokens"]));
    const auto answer_tokens = uploaded<P>(backend, numbers_of<std::int32_t>(document["answer_tokens"]));
    const auto advantage = uploaded<P>(backend, numbers_of<Real>(document["advantage"]));
    const auto old = uploaded<P>(backend, numbers_of<Real>(document["old_log_probability"]));
    const std::size_t row = document["tokens"][0].size();
    const Extent extent{1, static_cast<int>(document["tokens"].size()), static_cast<int>(row) - 1};
    BackendArray<P, Real> statistics(backend, answer_tokens.size() * sequence_statistics);
    BackendArray<P, Real> gradient(backend, parameters);
    BackendArray<P, Real> norm(backend, 1);
    BackendArray<P, Real> scratch(backend, backend.norm_scratch(1, parameters));

    auto workspace = Workspace<P>::for_training(backend, torch().shape, extent);
    Activations<P>& a = workspace.activations();
    const PassInput<P> input{extent, tokens.data(), row, weights.data(), weights.data(), parameters};
    transformer.forward(input, a);
    Classifier<P> classifier{.extent = extent,
                             .vocabulary = torch().shape.vocabulary,
                             .logits = a.logits,
                             .targets = tokens.data() + 1,
                             .target_stride = row,
                             .log_probability = a.log_probability,
                             .entropy = a.entropy};
    backend.run(classifier);
    backend.run(Objective<P>{.extent = extent,
                             .rule = rule,
                             .scale = 1.0 / extent.sequences,
                             .first_answer_row = prompt_tokens() - 1,
                             .answer_tokens = answer_tokens.data(),
                             .advantage = advantage.data(),
                             .log_probability = a.log_probability,
                             .old_log_probability = old.data(),
                             .entropy = a.entropy,
                             .weight = a.weight,
                             .statistics = statistics.data()});
    const auto rows = static_cast<std::size_t>(extent.rows());
    Pass pass;
    pass.logits = downloaded(backend, a.logits, rows * static_cast<std::size_t>(torch().shape.vocabulary));
    classifier.weight = a.weight;
    classifier.dlogits = a.dlogits;
    backend.run(classifier);
    transformer.backward(input, a, gradient.data(), parameters);
    backend.run(GlobalNorm<P>{1, parameters, gradient.data(), norm.data(), scratch.data()});

    pass.log_probability = downloaded(backend, a.log_probability, rows);
    pass.entropy = downloaded(backend, a.entropy, rows);
    pass.weight = downloaded(backend, a.weight, rows);
    pass.statistics = as_doubles(statistics.download());
    pass.gradient = as_doubles(gradient.download());
    pass.norm = static_cast<double>(norm.download()[0]);
    return pass;
}

void check_double(Backend<Float64>& backend) {
    CAPTURE(backend.name());
    const nlohmann::json& document = torch().document;
    for (const auto& [name, rule] : rules) {
        CAPTURE(name);
        const nlohmann::json& expected = document["objectives"][name];
        const Pass pass = run_pass(backend, rule);
        CHECK(relative_error(pass.logits, flat(document["logits"])) < rounding);
        CHECK(relative_error(pass.log_probability, flat(document["log_probability"])) < rounding);
        CHECK(relative_error(pass.entropy, flat(document["entropy"])) < rounding);
        CHECK(relative_error(pass.weight, flat(expected["weight"])) < rounding);
        CHECK(pass.norm == doctest::Approx(expected["norm"].get<double>()).epsilon(rounding));
        std::uint32_t probe = 0;
        for (const NamedParameter& parameter : named_parameters(torch().shape)) {
            CAPTURE(parameter.name);
            const std::vector<double> gradient = part_of(pass.gradient, parameter);
            if (expected.contains("gradient")) {
                CHECK(relative_error(gradient, from_hexadecimal(expected["gradient"][parameter.name])) < rounding);
                continue;
            }
            double squares = 0.0;
            double product = 0.0;
            for (const double number : gradient) {
                squares += number * number;
                product += number * recipe_number(document["probe_stream"], probe++);
            }
            const double norm = expected["probe"][parameter.name][0];
            CHECK(std::abs(std::sqrt(squares) - norm) <= rounding * norm);
            CHECK(std::abs(product - expected["probe"][parameter.name][1].get<double>()) <= rounding * norm);
        }
        if (name == "supervised") {
            double value = 0.0;
            for (std::size_t b = 0; b < pass.statistics.size(); b += sequence_statistics) {
                value += pass.statistics[b + stat_log_probability] / pass.statistics[b + stat_tokens];
            }
            value /= static_cast<double>(pass.statistics.size() / sequence_statistics);
            CHECK(value == doctest::Approx(expected["value"].get<double>()).epsilon(rounding));
        }
        if (name == "grpo") {
            CHECK(relative_error(pass.statistics, flat(document["grpo_statistics"])) < rounding);
        }
    }
}

TEST_CASE("In double precision every number of a forward and backward pass is PyTorch's") {
    check_double(*make_reference_backend(1));
    check_double(*make_cpu_backend_float64(1));
}

TEST_CASE("In single precision a pass is as near to PyTorch's float64 as PyTorch's own float32") {
    const nlohmann::json& document = torch().document;
    const nlohmann::json& allowed = document["normalised_error_of_float32"];
    const auto near = [](const std::vector<double>& ours, const std::vector<double>& reference, double of_torch) {
        return normalised_error(ours, reference) <= 16.0 * of_torch;
    };
    for (const InstructionSet set : available_instruction_sets()) {
        const auto backend = make_cpu_backend(1, set);
        CAPTURE(backend->name());
        for (const std::string name : {"supervised", "grpo"}) {
            CAPTURE(name);
            const Pass pass = run_pass(*backend, rules.at(name));
            CHECK(near(pass.logits, flat(document["logits"]), allowed["logits"]));
            CHECK(near(pass.log_probability, flat(document["log_probability"]), allowed["log_probability"]));
            CHECK(near(pass.entropy, flat(document["entropy"]), allowed["entropy"]));
            for (const NamedParameter& parameter : named_parameters(torch().shape)) {
                CAPTURE(parameter.name);
                CHECK(near(part_of(pass.gradient, parameter),
                           from_hexadecimal(document["objectives"][name]["gradient"][parameter.name]),
                           allowed[name][parameter.name]));
            }
        }
    }
}

// ---- the trainer ----------------------------------------------------------------------------------------------------

std::vector<TaskRollout> rollouts() {
    const nlohmann::json& document = torch().document;
    std::vector<TaskRollout> batch;
    for (std::size_t b = 0; b < document["tokens"].size(); ++b) {
        TaskRollout rollout;
        rollout.policy_version = -1;  // older than update 0, or its ratios would be taken for 1
        rollout.tokens = numbers_of<Token>(document["tokens"][b]);
        rollout.answer_tokens = {document["answer_tokens"][b]};
        rollout.advantage = {document["advantage"][b].get<double>()};
        const std::vector<double> old = flat(document["old_log_probability"][b]);
        rollout.log_probability.assign(old.begin() + prompt_tokens() - 1, old.end());
        batch.push_back(rollout);
    }
    return batch;
}

std::vector<const TaskRollout*> pointers(const std::vector<TaskRollout>& batch) {
    std::vector<const TaskRollout*> result;
    for (const TaskRollout& rollout : batch) {
        result.push_back(&rollout);
    }
    return result;
}

template <typename P>
Trainer<P> trainer_at_start(Backend<P>& backend) {
    Trainer<P> trainer(backend, torch().shape, 1, prompt_tokens(),
                       static_cast<int>(torch().document["tokens"][0].size()));
    trainer.start(torch().weights<typename P::Real>());
    return trainer;
}

/// Weights after the fixture's updates of maximum likelihood; `norms` gets the gradient's norm of each.
template <typename P>
std::vector<typename P::Real> train(Backend<P>& backend, std::vector<double>& norms) {
    const nlohmann::json& adamw = torch().document["adamw"];
    const OptimizerSettings optimizer{.learning_rate = adamw["learning_rate"],
                                      .beta1 = adamw["beta1"],
                                      .beta2 = adamw["beta2"],
                                      .epsilon = adamw["epsilon"],
                                      .weight_decay = adamw["weight_decay"],
                                      .max_gradient_norm = adamw["max_norm"]};
    Trainer<P> trainer = trainer_at_start(backend);
    const std::vector<TaskRollout> batch = rollouts();
    for (std::size_t step = 0; step < adamw["norms"].size(); ++step) {
        norms.push_back(
            trainer.update_supervised(pointers(batch), optimizer, optimizer.learning_rate)[0].gradient_norm);
    }
    return trainer.state().weights;
}

TEST_CASE("A batch of rollouts has PyTorch's gradient") {
    const auto backend = make_reference_backend(1);
    Trainer<Float64> trainer = trainer_at_start(*backend);
    const std::vector<TaskRollout> batch = rollouts();
    for (const std::string name : {"supervised", "grpo"}) {
        const std::vector<double> gradient = trainer.gradient(pointers(batch), rules.at(name));
        for (const NamedParameter& parameter : named_parameters(torch().shape)) {
            CAPTURE(parameter.name);
            CHECK(relative_error(part_of(gradient, parameter),
                                 from_hexadecimal(torch().document["objectives"][name]["gradient"][parameter.name])) <
                  rounding);
        }
    }
}

// AdamW divides gradients by their own size, so the relative error of the smallest counts as much as of the largest.
TEST_CASE("Five updates with clipped gradients and weight decay end at PyTorch's weights") {
    const nlohmann::json& adamw = torch().document["adamw"];
    const auto backend = make_reference_backend(1);
    std::vector<double> norms;
    const std::vector<double> weights = train(*backend, norms);
    CHECK(relative_error(norms, flat(adamw["norms"])) < rounding);
    for (const NamedParameter& parameter : named_parameters(torch().shape)) {
        CAPTURE(parameter.name);
        CHECK(relative_error(part_of(weights, parameter), from_hexadecimal(adamw["weights"][parameter.name])) <
              rounding);
    }
}

TEST_CASE("Five updates in single precision move the weights as far from float64 as PyTorch's float32 does") {
    const nlohmann::json& document = torch().document;
    const auto backend = make_cpu_backend(1);
    std::vector<double> norms;
    const std::vector<float> weights = train(*backend, norms);
    const std::vector<double> start = torch().weights<double>();
    for (const NamedParameter& parameter : named_parameters(torch().shape)) {
        CAPTURE(parameter.name);
        std::vector<double> ours = part_of(weights, parameter);
        std::vector<double> reference = from_hexadecimal(document["adamw"]["weights"][parameter.name]);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            ours[i] -= start[parameter.place + i];
            reference[i] -= start[parameter.place + i];
        }
        const double of_torch = document["normalised_error_of_float32"]["moved"][parameter.name];
        CHECK(normalised_error(ours, reference) <= 16.0 * of_torch);
    }
}

}  // namespace
}  // namespace millrace
