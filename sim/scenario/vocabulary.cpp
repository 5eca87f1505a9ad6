#include "sim/scenario/vocabulary.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "sim/scenario/diagnostics.h"

namespace millrace {
namespace {

constexpr auto required = KeyRule::Presence::required;
constexpr auto optional = KeyRule::Presence::optional;
constexpr auto defaulted = KeyRule::Presence::defaulted;

/// The learner of either kind of file: `interval` is the key that says how often it is evaluated, `further` are keys
/// that only one of them has.
std::vector<ObjectShape> learner_shapes(KeyRule interval, const std::vector<KeyRule>& further) {
    std::vector<KeyRule> keys = {{"task", required},
                                 {"model", defaulted, "{}"},
                                 {"warm_start", defaulted, R"({"kind": "supervised"})"},
                                 {"objective", defaulted, R"({"kind": "grpo"})"},
                                 {"optimizer", defaulted, "{}"},
                                 {"evaluation", defaulted, "{}"}};
    keys.insert(keys.end(), further.begin(), further.end());
    return {
        {"learner", "", std::move(keys)},
        {"learner.task", "sort", {{"kind", required}, {"digits", required}}},
        {"learner.task", "countdown", {{"kind", required}, {"numbers", required}}},
        {"learner.task", "addition", {{"kind", required}, {"digits", required}}},
        {"learner.model",
         "",
         {{"layers", defaulted, "2"},
          {"width", defaulted, "32"},
          {"heads", defaulted, "2"},
          {"mlp_width", defaulted, "128"},
          {"context", optional}}},  // else what the task needs: see task_tokens()
        {"learner.warm_start",
         "supervised",
         {{"kind", required},
          {"seed", defaulted, "1"},
          {"updates", defaulted, "200"},
          {"batch", defaulted, "64"},
          {"learning_rate", defaulted, "0.002"},
          {"warmup_updates", defaulted, "50"},
          {"annealed_fraction", defaulted, "0.5"},
          {"beta1", defaulted, "0.9"},
          {"beta2", defaulted, "0.98"},
          {"epsilon", defaulted, "1e-8"},
          {"weight_decay", defaulted, "0"},
          {"max_gradient_norm", defaulted, "1"}}},
        {"learner.warm_start", "checkpoint", {{"kind", required}, {"path", required}, {"hash", optional}}},
        {"learner.objective",
         "grpo",
         {{"kind", required},
          {"ratio", defaulted, R"("token")"},
          {"clip", optional},  // else 0.2, when the next two are absent too: see fill_dependent_learner_defaults()
          {"clip_low", optional},
          {"clip_high", optional}}},
        {"learner.objective", "asymre", {{"kind", required}, {"shift", defaulted, "-0.1"}}},
        {"learner.objective", "reinforce", {{"kind", required}, {"ratio", defaulted, R"("token")"}}},
        {"learner.optimizer",
         "",
         {{"learning_rate", defaulted, "0.0002"},
          {"warmup_updates", defaulted, "10"},
          {"beta1", defaulted, "0.9"},
          {"beta2", defaulted, "0.99"},
          {"epsilon", defaulted, "1e-8"},
          {"weight_decay", defaulted, "0"},
          {"max_gradient_norm", defaulted, "1"}}},
        {"learner.evaluation",
         "",
         {interval,
          {"sampled_prompts", defaulted, "128"},
          {"samples", defaulted, "16"},
          {"greedy_prompts", defaulted, "512"}}},
    };
}

std::vector<ObjectShape> scenario_shapes() {
    std::vector<ObjectShape> shapes = {
        {"",
         "",
         {{"$schema", optional},
          {"name", required},
          {"description", defaulted, R"("")"},
          {"seed", defaulted, "1"},
          {"replications", defaulted, "10"},
          {"horizon", required},
          {"workers", required},
          {"groups", defaulted, "{}"},
          {"reward", optional},
          {"trainers", required},
          {"store", required},
          {"weight_sync", defaulted, "{}"},
          {"admission", defaulted, R"({"kind": "none"})"},
          {"noise", optional},
          {"learner", optional},
          {"price", optional},
          {"published", defaulted, "[]"}}},
        {"horizon", "", {{"updates", required}, {"warmup_updates", defaulted, R"("auto")"}, {"units", optional}}},
        {"workers",
         "",
         {{"count", required},
          {"slots", required},
          {"service", required},
          {"length", optional},  // required by laws that count tokens, else 1: see fill_dependent_defaults()
          {"prompt_length", defaulted, "0"}}},
        {"workers.service", "first_order", {{"kind", required}, {"gpu_s_per_rollout", required}}},
        {"workers.service",
         "step",
         {{"kind", required},
          {"base_s", defaulted, "0"},
          {"per_sequence_s", defaulted, "0"},
          {"per_context_token_s", defaulted, "0"},
          {"prefill_per_token_s", defaulted, "0"},
          {"kv_cap_tokens", optional}}},
        {"groups", "", {{"size", defaulted, "1"}}},
        {"reward",
         "",
         {{"latency_s", defaulted, "0"},
          {"servers", defaulted, R"("unlimited")"},
          {"correct_probability", defaulted, "0.5"}}},  // with a learner it is neither stated nor filled in
        {"trainers",
         "",
         {{"count", required}, {"batch", required}, {"service", required}, {"fresh_per_update", defaulted, "0"}}},
        {"trainers.service", "fixed", {{"kind", required}, {"gpu_s_per_update", required}}},
        {"trainers.service", "split", {{"kind", required}, {"parallel_s", required}, {"serial_s", required}}},
        {"trainers.service", "per_token", {{"kind", required}, {"gpu_s_per_token", required}, {"base_s", required}}},
        {"store",
         "transfer_queue",
         {{"kind", required},
          {"capacity", required},
          {"order", defaulted, R"("fifo")"},
          {"overflow", defaulted, R"("block")"}}},
        {"store",
         "replay_buffer",
         {{"kind", required},
          {"capacity", required},
          {"sampling", defaulted, R"("uniform_with_replacement")"},
          {"sharded", defaulted, "false"},
          {"eviction", defaulted, R"({"kind": "fifo"})"}}},
        {"store.eviction", "fifo", {{"kind", required}}},
        {"store.eviction", "positive_bias", {{"kind", required}, {"delta", required}}},
        {"weight_sync",
         "",
         {{"every", defaulted, "1"},
          {"transfer_s", defaulted, "0"},
          {"in_flight", defaulted, R"("between_rollouts")"},
          {"trainers_wait", defaulted, "false"}}},
        {"admission", "none", {{"kind", required}}},
        {"admission",
         "token_bucket",
         {{"kind", required},
          {"steps_ahead", defaulted, "0"},
          {"rollouts_per_update", optional}}},  // else trainers.batch: see fill_dependent_defaults()
        {"noise", "", {{"sigma2", required}, {"rho", defaulted, "0"}}},
        {"noise.sigma2",
         "floor_growth",
         {{"kind", required}, {"floor", required}, {"growth", required}, {"exponent", defaulted, "1"}}},
        {"noise.sigma2", "power_law", {{"kind", required}, {"alpha", required}, {"tau", required}}},
        {"noise.sigma2", "table", {{"kind", required}, {"points", required}}},
        {"price", "", {{"usd_per_gpu_hour", required}}},
        {"published", "", {{"metric", required}, {"value", required}, {"source", required}}},

        {"law", "constant", {{"kind", required}, {"value", required}}},
        {"law", "uniform", {{"kind", required}, {"min", required}, {"max", required}}},
        {"law", "exponential", {{"kind", required}, {"mean", required}}},
        {"law",
         "lognormal",  // by mean and cv, or by p50 and p99
         {{"kind", required}, {"mean", optional}, {"cv", optional}, {"p50", optional}, {"p99", optional}}},
        {"law", "gamma", {{"kind", required}, {"mean", required}, {"cv", required}}},
        {"law", "weibull", {{"kind", required}, {"scale", required}, {"shape", required}}},
        {"law", "pareto", {{"kind", required}, {"minimum", required}, {"shape", required}}},
        {"law", "truncated", {{"kind", required}, {"of", required}, {"max", required}, {"mode", required}}},
        {"law", "mixture", {{"kind", required}, {"components", required}}},
        {"law", "empirical", {{"kind", required}, {"values", optional}, {"quantiles", optional}}},
        {"law.component", "", {{"weight", required}, {"of", required}}},
    };
    std::ranges::move(learner_shapes({"every_units", defaulted, "300"},
                                     {{"replicas", defaulted, "1"}, {"target_pass_at_1", defaulted, "0.5"}}),
                      std::back_inserter(shapes));
    return shapes;
}

std::vector<ObjectShape> learn_shapes() {
    std::vector<ObjectShape> shapes = {
        {"",
         "",
         {{"$schema", optional},
          {"name", required},
          {"description", defaulted, R"("")"},
          {"seed", defaulted, "1"},
          {"replications", defaulted, "4"},
          {"horizon", required},
          {"groups", defaulted, "{}"},
          {"trainers", defaulted, "{}"},
          {"learner", required}}},
        {"horizon", "", {{"updates", required}}},
        {"groups", "", {{"size", defaulted, "8"}}},
        {"trainers", "", {{"batch", defaulted, "64"}}},
    };
    std::ranges::move(learner_shapes({"every_updates", defaulted, "50"}, {}), std::back_inserter(shapes));
    return shapes;
}

/// What a scenario may say and a learn file may not.
std::vector<ForeignKey> keys_of_a_pipeline() {
    std::vector<ForeignKey> keys;
    for (const std::string_view name :
         {"workers", "reward", "store", "weight_sync", "admission", "noise", "price", "published", "faults"}) {
        keys.push_back({"", name, "a learn file has no pipeline", R"("millrace run" simulates scenarios with one)"});
    }
    constexpr std::string_view no_costs = "a learn file has no service times, so it counts updates instead of compute";
    keys.push_back({"horizon", "units", no_costs, "", "updates"});
    keys.push_back({"learner.evaluation", "every_units", no_costs, "", "every_updates"});
    keys.push_back({"learner", "target_pass_at_1", no_costs, R"("millrace run" finds the compute to a target)"});
    keys.push_back({"learner", "replicas", "a learn file has no timeline for replicas to share",
                    R"("replications" at the top of the file is how many models learn)"});
    return keys;
}

std::vector<ForeignKey> keys_of_no_scenario() {
    return {{"", "faults", "not supported by this version"},
            {"learner.evaluation", "every_updates",
             "updates of different pipelines differ in cost, so a scenario counts compute", "", "every_units"}};
}

std::string_view parent_of(std::string_view path) {
    const std::size_t dot = path.rfind('.');
    return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

bool is_law(std::string_view path) {
    return path.starts_with("law");
}

}  // namespace

const Vocabulary& scenario_vocabulary() {
    static const Vocabulary vocabulary(scenario_shapes(), keys_of_no_scenario());
    return vocabulary;
}

const Vocabulary& learn_vocabulary() {
    static const Vocabulary vocabulary(learn_shapes(), keys_of_a_pipeline());
    return vocabulary;
}

const ObjectShape* Vocabulary::find_shape(std::string_view path, std::string_view kind) const {
    for (const ObjectShape& shape : shapes_) {
        if (shape.path == path && shape.kind == kind) {
            return &shape;
        }
    }
    return nullptr;
}

std::vector<std::string_view> Vocabulary::kinds_of(std::string_view path) const {
    std::vector<std::string_view> kinds;
    for (const ObjectShape& shape : shapes_) {
        if (shape.path == path && !shape.kind.empty()) {
            kinds.push_back(shape.kind);
        }
    }
    return kinds;
}

std::vector<std::string> Vocabulary::homes_of(std::string_view name, std::string_view path) const {
    std::vector<std::string> exact;
    std::vector<std::string> near;
    const auto add = [](std::vector<std::string>& homes, const ObjectShape& shape, std::string_view key) {
        std::string home = (shape.path.empty() ? "" : std::string(shape.path) + ".") + std::string(key);
        if (std::find(homes.begin(), homes.end(), home) == homes.end()) {
            homes.push_back(std::move(home));
        }
    };
    for (const ObjectShape& shape : shapes_) {
        if (shape.path == path || is_law(shape.path)) {
            continue;
        }
        const bool is_neighbour =
            shape.path == parent_of(path) || (!shape.path.empty() && parent_of(shape.path) == path);
        for (const KeyRule& key : shape.keys) {
            if (key.name == "kind") {
                continue;
            }
            if (key.name == name) {
                add(exact, shape, key.name);
            } else if (is_neighbour && !nearest_name(name, std::array{key.name}).empty()) {
                add(near, shape, key.name);
            }
        }
    }
    return exact.empty() ? near : exact;
}

const ForeignKey* Vocabulary::find_foreign(std::string_view path, std::string_view name) const {
    for (const ForeignKey& key : foreign_) {
        if (key.path == path && key.name == name) {
            return &key;
        }
    }
    return nullptr;
}

std::span<const std::string_view> metric_keys() {
    static constexpr std::array keys = std::to_array<std::string_view>({
        "compute/gamma",
        "compute/gamma_simulated",
        "compute/effective_mu",
        "compute/active_gpu_s_per_update",
        "compute/reserved_gpu_s_per_update",
        "compute/usd_per_update",
        "time/update_period_s",
        "time/wall_s",
        "replay/mean",
        "replay/unique_fraction",
        "staleness/mean",
        "staleness/variance",
        "staleness/p50",
        "staleness/p99",
        "staleness/max",
        "staleness/pre_store",
        "staleness/in_store",
        "staleness/offered_mean",
        "staleness/group_mean",
        "last_use/new_fraction",
        "last_use/mean",
        "workers/busy",
        "workers/paused",
        "workers/blocked",
        "workers/starved",
        "workers/running_mean",
        "trainers/busy",
        "trainers/waiting",
        "trainers/stalled",
        "rollouts/generated_per_update",
        "rollouts/trained_per_update",
        "rollouts/dropped_per_update",
        "store/size_mean",
        "noise/relative_variance",
        "noise/relative_compute_to_target",
        "learner/pass@1",
        "learner/pass@4",
        "learner/pass@16",
        "learner/greedy",
        "learner/entropy",
        "learner/greedy_at_start",
        "learner/greedy_largest_drop",
        "learner/compute_budget",
        "learner/compute_spent",
        "learner/compute_to_target",
        "learner/active_gpu_s_to_target",
        "learner/reserved_gpu_s_to_target",
        "learner/updates_to_target",
        "learner/compute_to_98_percent_of_best",
        "learner/greedy_at_target",
        "learner/pass@16_at_target",
        "learner/entropy_at_target",
        "updates/ratio_deviation",
        "updates/clipped_fraction",
        "updates/ess_token",
        "updates/ess_sequence",
    });
    return keys;
}

}  // namespace millrace
