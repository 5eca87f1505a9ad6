#include "sim/scenario/decode_laws.h"

#include <cmath>
#include <optional>
#include <stdexcept>

namespace millrace {
namespace {

using OptionalLaw = std::optional<Distribution>;

OptionalLaw decode_law(const JsonNode& node, const std::string& path, double largest, Diagnostics& diagnostics);

/// The elements of a list that must not be empty; none when it is no list.
const std::vector<JsonNode>& list_elements(const ObjectReader& reader, std::string_view key, std::string_view what,
                                           Diagnostics& diagnostics) {
    static const std::vector<JsonNode> none;
    const JsonNode* list = reader.find(key);
    if (list == nullptr) {
        return none;
    }
    if (list->kind != JsonNode::Kind::array) {
        report_mismatch(*list, reader.path_to(key), "a list of " + std::string(what), diagnostics);
        return none;
    }
    if (list->children.empty()) {
        reader.report(key, "expected at least one of the " + std::string(what) + ", found an empty list");
    }
    return list->children;
}

/// A list of [x, y] pairs; x strictly increasing or only not decreasing, y not decreasing.
std::vector<std::pair<double, double>> read_pairs(const ObjectReader& reader, std::string_view key,
                                                  std::string_view what, RealRange x_range, RealRange y_range,
                                                  bool strictly, Diagnostics& diagnostics) {
    std::vector<std::pair<double, double>> pairs;
    std::size_t index = 0;
    for (const JsonNode& element : list_elements(reader, key, what, diagnostics)) {
        const std::string path = reader.path_to(key) + "." + std::to_string(index++);
        if (element.kind != JsonNode::Kind::array || element.children.size() != 2) {
            report_mismatch(element, path, "a pair [x, y]", diagnostics);
            continue;
        }
        const double x = read_real(element.children[0], path + ".0", x_range, diagnostics);
        const double y = read_real(element.children[1], path + ".1", y_range, diagnostics);
        if (!pairs.empty() && (strictly ? x <= pairs.back().first : x < pairs.back().first)) {
            diagnostics.report(element.children[0].value_place, path + ".0",
                               "expected a number " + std::string(strictly ? "above " : "of at least ") +
                                   number_text(pairs.back().first) + ", the one before it, found " +
                                   describe_value(element.children[0]));
        }
        if (!pairs.empty() && y < pairs.back().second) {
            diagnostics.report(element.children[1].value_place, path + ".1",
                               "expected a number of at least " + number_text(pairs.back().second) +
                                   ", the one before it, found " + describe_value(element.children[1]));
        }
        pairs.emplace_back(x, y);
    }
    return pairs;
}

enum class Way { first, second, neither };

/// Which of two ways of stating a law is used: all keys of one and none of the other. Neither has been reported.
Way way_of_stating(const ObjectReader& reader, const std::vector<std::string_view>& first,
                   const std::vector<std::string_view>& second, const std::string& wanted) {
    const auto present = [&](const std::vector<std::string_view>& keys) {
        std::size_t found = 0;
        for (const std::string_view key : keys) {
            found += reader.find(key) != nullptr ? 1U : 0U;
        }
        return found;
    };
    const bool only_first = present(first) == first.size() && present(second) == 0;
    const bool only_second = present(second) == second.size() && present(first) == 0;
    if (!only_first && !only_second) {
        reader.report("kind", "expected " + wanted);
    }
    return only_first ? Way::first : only_second ? Way::second : Way::neither;
}

OptionalLaw decode_lognormal(const ObjectReader& reader, RealRange size) {
    const Way way = way_of_stating(reader, {"mean", "cv"}, {"p50", "p99"},
                                   "\"mean\" and \"cv\", or \"p50\" and \"p99\", beside this kind");
    if (way == Way::neither) {
        return std::nullopt;
    }
    if (way == Way::first) {
        return Distribution::lognormal(reader.real("mean", size), reader.real("cv", any_positive));
    }
    const double p50 = reader.real("p50", size);
    const double p99 = reader.real("p99", size);
    if (p99 <= p50) {
        reader.report("p99", "expected a number above p50 = " + number_text(p50) + ", found " + number_text(p99));
        return std::nullopt;
    }
    return Distribution::lognormal_from_quantiles(p50, p99);
}

OptionalLaw decode_truncated(const ObjectReader& reader, double largest, Diagnostics& diagnostics) {
    // What is cut off may be as heavy as it likes.
    const JsonNode* of = reader.find("of");
    const OptionalLaw law = of == nullptr ? std::nullopt : decode_law(*of, reader.path_to("of"), largest, diagnostics);
    const double cap = reader.real("max", {0.0, largest, true, false});
    const TruncateMode mode =
        reader.choice<TruncateMode>("mode", {{"clip", TruncateMode::clip}, {"resample", TruncateMode::resample}});
    if (!law) {
        return std::nullopt;
    }
    if (mode == TruncateMode::resample && law->cdf(cap) <= 0.0) {
        reader.report("max",
                      "no draw of the law lies at or below " + number_text(cap) + ", so drawing again never ends");
        return std::nullopt;
    }
    return Distribution::truncated(*law, cap, mode);
}

OptionalLaw decode_mixture(const ObjectReader& reader, double largest, Diagnostics& diagnostics) {
    std::vector<std::pair<double, Distribution>> components;
    double weight_sum = 0.0;
    const std::vector<JsonNode>& elements = list_elements(reader, "components", "components", diagnostics);
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const ObjectReader component(elements[i], reader.path_to("components") + "." + std::to_string(i),
                                     "law.component", diagnostics);
        const double weight = component.real("weight", any_nonnegative);
        const JsonNode* of = component.find("of");
        const OptionalLaw law =
            of == nullptr ? std::nullopt : decode_law(*of, component.path_to("of"), largest, diagnostics);
        if (law) {
            components.emplace_back(weight, *law);
            weight_sum += weight;
        }
    }
    if (components.size() != elements.size() || elements.empty()) {
        return std::nullopt;
    }
    if (weight_sum <= 0.0) {
        reader.report("components", "expected at least one positive weight");
        return std::nullopt;
    }
    return Distribution::mixture(std::move(components));
}

OptionalLaw decode_empirical(const ObjectReader& reader, RealRange value_range, Diagnostics& diagnostics) {
    const Way way =
        way_of_stating(reader, {"values"}, {"quantiles"}, "either \"values\" or \"quantiles\" beside this kind");
    if (way == Way::neither) {
        return std::nullopt;
    }
    if (way == Way::first) {
        std::vector<double> values;
        for (const JsonNode& element : list_elements(reader, "values", "values", diagnostics)) {
            const std::string path = reader.path_to("values") + "." + std::to_string(values.size());
            values.push_back(read_real(element, path, value_range, diagnostics));
        }
        return Distribution::empirical(std::move(values));
    }
    std::vector<std::pair<double, double>> table =
        read_pairs(reader, "quantiles", "pairs [probability, value]", {0.0, 1.0}, value_range, false, diagnostics);
    if (diagnostics.clean(reader.path_to("quantiles")) && !table.empty() &&
        (table.size() < 2 || table.front().first != 0.0 || table.back().first != 1.0)) {
        reader.report("quantiles", "expected probabilities from 0 to 1, found " + number_text(table.front().first) +
                                       " to " + number_text(table.back().first));
    }
    return Distribution::quantile_table(std::move(table));
}

OptionalLaw decode_object_law(const ObjectReader& reader, double largest, Diagnostics& diagnostics) {
    const RealRange size{0.0, largest};
    const RealRange positive_size{0.0, largest, true, false};
    const std::string_view kind = reader.kind();
    if (kind == "constant") {
        return Distribution::constant(reader.real("value", size));
    }
    if (kind == "uniform") {
        const double low = reader.real("min", size);
        const double high = reader.real("max", size);
        if (high < low) {
            reader.report("max",
                          "expected a number of at least min = " + number_text(low) + ", found " + number_text(high));
            return std::nullopt;
        }
        return Distribution::uniform(low, high);
    }
    if (kind == "exponential") {
        return Distribution::exponential(reader.real("mean", positive_size));
    }
    if (kind == "lognormal") {
        return decode_lognormal(reader, positive_size);
    }
    if (kind == "gamma") {
        return Distribution::gamma(reader.real("mean", positive_size), reader.real("cv", any_positive));
    }
    if (kind == "weibull") {
        return Distribution::weibull(reader.real("scale", positive_size), reader.real("shape", any_positive));
    }
    if (kind == "pareto") {
        return Distribution::pareto(reader.real("minimum", positive_size), reader.real("shape", any_positive));
    }
    if (kind == "truncated") {
        return decode_truncated(reader, largest, diagnostics);
    }
    if (kind == "mixture") {
        return decode_mixture(reader, largest, diagnostics);
    }
    return decode_empirical(reader, size, diagnostics);
}

/// None when something is wrong, which has been reported.
OptionalLaw decode_law(const JsonNode& node, const std::string& path, double largest, Diagnostics& diagnostics) {
    const std::size_t faults_before = diagnostics.count();
    try {
        OptionalLaw law;
        if (node.is_number()) {
            law = Distribution::constant(read_real(node, path, {0.0, largest}, diagnostics));
        } else {
            const ObjectReader reader = ObjectReader::with_kind(node, path, "law", diagnostics);
            if (!reader.kind().empty()) {
                law = decode_object_law(reader, largest, diagnostics);
            }
        }
        return diagnostics.count() == faults_before ? law : std::nullopt;
    } catch (const std::invalid_argument& error) {
        // A placeholder, or a combination of parameters that only the law itself can judge.
        if (diagnostics.count() == faults_before) {
            diagnostics.report(node.value_place, path, error.what());
        }
        return std::nullopt;
    }
}

}  // namespace

Distribution read_law(const ObjectReader& reader, std::string_view key, LawDemand demand, Diagnostics& diagnostics) {
    const JsonNode* node = reader.find(key);
    const OptionalLaw law =
        node == nullptr ? std::nullopt : decode_law(*node, reader.path_to(key), demand.largest, diagnostics);
    if (!law) {
        return Distribution::constant(1.0);
    }
    const double mean = law->mean();
    if (!std::isfinite(mean)) {
        reader.report(key, "expected a law with a finite mean, found " + law->describe(),
                      R"(limit it: {"kind": "truncated", "of": ..., "max": ..., "mode": "clip"})");
    } else if (mean > demand.largest) {
        reader.report(key, "expected a mean of at most " + number_text(demand.largest) + ", found " +
                               number_text(mean) + " for " + law->describe());
    } else if (mean < demand.least_mean) {
        reader.report(key, "expected a time with a mean of at least " + number_text(demand.least_mean) +
                               " s, the unit of simulated time, found " + law->describe());
    }
    return *law;
}

// ---- service laws -------------------------------------------------------------------------------------------------

WorkerService read_worker_service(const JsonNode& node, Diagnostics& diagnostics) {
    const ObjectReader reader = ObjectReader::with_kind(node, "workers.service", "workers.service", diagnostics);
    if (reader.kind() != "step") {
        return FirstOrderService{read_law(reader, "gpu_s_per_rollout", working_time_law, diagnostics)};
    }
    StepService step;
    step.law.base_s = reader.real("base_s", duration_s);
    step.law.per_sequence_s = reader.real("per_sequence_s", duration_s);
    step.law.per_context_token_s = reader.real("per_context_token_s", duration_s);
    step.law.prefill_per_token_s = reader.real("prefill_per_token_s", duration_s);
    if (reader.find("kv_cap_tokens") != nullptr) {
        step.kv_cap_tokens = reader.whole("kv_cap_tokens", 1);
    }
    const double step_s = step.law.base_s + step.law.per_sequence_s + step.law.per_context_token_s;
    if (step_s < shortest_s && diagnostics.clean("workers.service")) {
        diagnostics.report(node.key_place, "workers.service",
                           "expected base_s, per_sequence_s and per_context_token_s of at least " +
                               number_text(shortest_s) + " s together, the unit of simulated time, found " +
                               number_text(step_s));
    }
    return step;
}

TrainerService read_trainer_service(const JsonNode& node, Diagnostics& diagnostics) {
    const ObjectReader reader = ObjectReader::with_kind(node, "trainers.service", "trainers.service", diagnostics);
    const auto takes_time = [&](double first_s, double second_s, const std::string& names) {
        if (first_s + second_s <= 0.0 && diagnostics.clean("trainers.service")) {
            diagnostics.report(node.key_place, "trainers.service",
                               "expected a positive " + names + ", or an update takes no time");
        }
    };
    if (reader.kind() == "split") {
        const SplitTrainerService split{reader.real("parallel_s", duration_s), reader.real("serial_s", duration_s)};
        takes_time(split.parallel_s, split.serial_s, "parallel_s or serial_s");
        return split;
    }
    if (reader.kind() == "per_token") {
        const PerTokenTrainerService per_token{reader.real("gpu_s_per_token", duration_s),
                                               reader.real("base_s", duration_s)};
        takes_time(per_token.gpu_s_per_token, per_token.base_s, "gpu_s_per_token or base_s");
        return per_token;
    }
    return FixedTrainerService{read_law(reader, "gpu_s_per_update", working_time_law, diagnostics)};
}

// ---- noise --------------------------------------------------------------------------------------------------------

namespace {

constexpr RealRange noise_size{smallest_noise_number, largest_noise_number};

}  // namespace

NoiseConfig read_noise(const JsonNode& node, Diagnostics& diagnostics) {
    const ObjectReader reader(node, "noise", "noise", diagnostics);
    NoiseConfig noise;
    noise.rho = reader.real("rho", {0.0, 1.0});
    const JsonNode* law = reader.find("sigma2");
    if (law == nullptr) {
        return noise;
    }
    const ObjectReader sigma2 = ObjectReader::with_kind(*law, "noise.sigma2", "noise.sigma2", diagnostics);
    if (sigma2.kind() == "floor_growth") {
        noise.sigma2 =
            FloorGrowthNoise{sigma2.real("floor", noise_size), sigma2.real("growth", {0.0, largest_noise_number}),
                             sigma2.real("exponent", {0.0, largest_noise_exponent, true})};
    } else if (sigma2.kind() == "power_law") {
        noise.sigma2 = PowerLawNoise{sigma2.real("alpha", {0.0, 0.5, true, true}), sigma2.real("tau", noise_size)};
    } else if (sigma2.kind() == "table") {
        TabulatedNoise table{read_pairs(sigma2, "points", "points [staleness, sigma2]", {0.0, largest_noise_number},
                                        noise_size, true, diagnostics)};
        if (!table.points.empty() && table.points.front().first != 0.0 && diagnostics.clean("noise.sigma2.points")) {
            sigma2.report("points", "expected the first point at staleness 0, found it at " +
                                        number_text(table.points.front().first));
        }
        noise.sigma2 = std::move(table);
    }
    return noise;
}

}  // namespace millrace
