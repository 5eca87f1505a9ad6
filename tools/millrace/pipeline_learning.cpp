#include "tools/millrace/pipeline_learning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "model/evaluation/first_passage.h"
#include "model/warm_start.h"
#include "sim/sweep/formulas.h"
#include "tools/millrace/interrupt.h"
#include "tools/millrace/learn_curve.h"
#include "tools/millrace/learn_result.h"
#include "tools/millrace/learner_seeds.h"
#include "tools/millrace/safe_file.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double nearly_the_best = 0.98;
constexpr std::size_t last_evaluations = 3;

/// A backend that lives as long as the learner on it.
template <typename P>
struct LearnerOnBackend {
    LearnerOnBackend(std::unique_ptr<Backend<P>> its, const PipelineLearnerSettings& settings,
                     const std::vector<std::uint64_t>& seeds, const std::vector<float>& theta_0)
        : backend(std::move(its)), learner(*backend, settings, seeds, theta_0) {}

    std::unique_ptr<Backend<P>> backend;
    PipelineLearner<P> learner;
};

Json row_of(std::int64_t replication, std::size_t replica, const CurvePoint& point) {
    Json row;
    row["replication"] = replication;
    row["replica"] = replica;
    row["update"] = point.update;
    row["compute/units"] = point.units;
    row["compute/active_gpu_s"] = point.active_gpu_s;
    row["compute/reserved_gpu_s"] = point.reserved_gpu_s;
    row["time/wall_s"] = point.at_s;
    row["staleness/mean"] = point.staleness;
    row["replay/mean"] = point.replay;
    put_evaluation(row, point.evaluation[replica]);
    put_statistics(row, point.update > 0 ? std::optional(point.statistics[replica]) : std::nullopt);
    return row;
}

/// Median and quartiles over seeds, in which a seed that never gets there counts as infinitely late.
Json quartiles(const std::vector<double>& values) {
    Json json;
    for (const auto& [name, quarter] : {std::pair{"quartile_1", 1}, {"median", 2}, {"quartile_3", 3}}) {
        json[name] = json_number(quartile(values, quarter));
    }
    return json;
}

std::string cell(double value, const char* format) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, value);
    return std::isfinite(value) ? text.data() : "never";
}

}  // namespace

PipelineLearning::PipelineLearning(const Scenario& scenario, const std::string& backend, std::int64_t jobs,
                                   const std::string& curve, CheckpointFolder* folder, WarmStarts* warm_starts)
    : scenario_(scenario),
      costs_(first_order_costs(scenario.pipeline)),
      backend_choice_(backend),
      threads_(std::max<std::int64_t>(1, jobs / scenario.replications)),
      folder_(folder),
      curve_path_(curve),
      seeds_(static_cast<std::size_t>(scenario.replications * scenario.learner->replicas)),
      weights_hashes_(static_cast<std::size_t>(scenario.replications)) {
    if (!curve.empty()) {
        static_cast<void>(SafeFile(curve));  // says what is wrong with the path
        curve_file_.open(curve, std::ios::binary | std::ios::trunc);
    }
    BackendChoice chosen = open_backend(backend, jobs);
    AnyBackend& first = chosen.backend;
    backend_name_ = describe(first);
    backend_kind_ = kind_of(first);
    remark_ = chosen.remark;
    WarmStarts own;
    const WarmStarts::Weights start = (warm_starts != nullptr ? *warm_starts : own).get(first, *scenario.learner);
    theta_0_ = start->weights;
    theta_0_hash_ = hash_text(start->hash);
    if (folder_ != nullptr) {
        for (std::int64_t replication = 0; replication < scenario.replications; ++replication) {
            static_cast<void>(checkpoint_of(replication));  // says what is wrong before anything is learnt
        }
        folder_->keep_settings();
    }
}

// ---- checkpoints ----------------------------------------------------------------------------------------------------

std::uint64_t PipelineLearning::checkpoint_hash(std::int64_t replication) const {
    const std::array<std::uint64_t, 2> words{folder_->settings_hash(), static_cast<std::uint64_t>(replication)};
    return content_hash<std::uint64_t>(words);
}

std::optional<PipelineCheckpoint<float>> PipelineLearning::checkpoint_of(std::int64_t replication) const {
    if (folder_ == nullptr || !std::filesystem::exists(folder_->replication_path(replication))) {
        return std::nullopt;
    }
    const std::string path = folder_->replication_path(replication);
    PipelineCheckpoint<float> checkpoint = read_pipeline_checkpoint<float>(path);
    const auto require = [&](bool holds, const std::string& problem) {
        if (!holds) {
            throw std::runtime_error("The checkpoint " + path + " " + problem + ".");
        }
    };
    require(checkpoint.made_on == backend_kind_,
            "was made on " + checkpoint.made_on + ", not on " + backend_kind_ +
                ", which rounds in another way (MILLRACE_CPU_ISA chooses among a CPU's instruction sets)");
    require_theta_0(checkpoint.learner, content_hash<float>(theta_0_), path);
    require(checkpoint.learner.settings_hash == checkpoint_hash(replication),
            "is of another replication or of other settings than those in settings.json");
    const std::int64_t updates = checkpoint.learner.counters.updates;
    require(updates <= scenario_.horizon.updates, "has made " + std::to_string(updates) + " updates, more than the " +
                                                      std::to_string(scenario_.horizon.updates) +
                                                      " in all that are wanted; horizon.updates must be at least " +
                                                      std::to_string(updates) + " to resume it");
    const double units = scenario_.horizon.units.value_or(never);
    require(checkpoint.units_before < units, "has spent more than horizon.units = " + cell(units, "%g") +
                                                 ", which must be above " + cell(checkpoint.units_before, "%g") +
                                                 " to resume it");
    return checkpoint;
}

std::shared_ptr<Learner> PipelineLearning::make(std::int64_t replication) {
    AnyBackend backend = open_backend(backend_choice_, threads_).backend;
    return std::visit([&](auto& one) { return make_on(std::move(one), replication); }, backend);
}

template <typename P>
std::shared_ptr<Learner> PipelineLearning::make_on(std::unique_ptr<Backend<P>> backend, std::int64_t replication) {
    PipelineLearnerSettings settings;
    settings.learner = *scenario_.learner;
    settings.group_size = static_cast<int>(scenario_.pipeline.groups.size);
    settings.rollouts_switch_version = scenario_.pipeline.weight_sync.in_flight == InFlight::in_place;
    settings.unit_gpu_s = costs_.gpu_s_per_update;
    settings.evaluate_every_units = scenario_.learner->evaluation.every_units;
    settings.budget_units = scenario_.horizon.units.value_or(0.0);
    settings.updates = scenario_.horizon.updates;
    settings.stop = folder_ != nullptr ? &interrupted() : nullptr;

    std::vector<std::uint64_t> seeds;
    for (std::int64_t replica = 0; replica < scenario_.learner->replicas; ++replica) {
        seeds.push_back(learner_seed(scenario_.seed, replication * scenario_.learner->replicas + replica));
    }
    const auto made = std::make_shared<LearnerOnBackend<P>>(std::move(backend), settings, seeds, theta_0_);
    PipelineLearner<P>& learner = made->learner;
    learner.on_evaluated = [this, replication, &learner](const CurvePoint& point) {
        note(replication, point);
        if (folder_ != nullptr && point.update > 0) {
            PipelineCheckpoint<float> checkpoint = learner.save();
            checkpoint.made_on = backend_kind_;
            checkpoint.learner.settings_hash = checkpoint_hash(replication);
            write_pipeline_checkpoint(folder_->replication_path(replication), checkpoint);
        }
    };
    learner.on_end = [this, replication, &learner] {
        weights_hashes_[static_cast<std::size_t>(replication)] =
            hash_text(content_hash<float>(learner.learner().policy().download()));
    };
    if (const auto checkpoint = checkpoint_of(replication)) {
        learner.resume(*checkpoint);
        for (const CurvePoint& point : learner.curve()) {
            note(replication, point);
        }
    } else {
        learner.evaluate_start();
    }
    return {made, &learner};
}

void PipelineLearning::note(std::int64_t replication, const CurvePoint& point) {
    for (std::size_t replica = 0; replica < point.evaluation.size(); ++replica) {
        Row row = row_of(replication, replica, point);
        if (curve_file_.is_open()) {
            const std::lock_guard lock(curve_file_mutex_);
            curve_file_ << row.dump() << '\n' << std::flush;
        }
        const auto seed = static_cast<std::size_t>(replication) * point.evaluation.size() + replica;
        seeds_[seed].rows.push_back(std::move(row));
    }
}

// ---- what it comes to -----------------------------------------------------------------------------------------------

std::vector<double> PipelineLearning::Seed::column(std::string_view key) const {
    std::vector<double> values;
    for (const Row& row : rows) {
        const Row& value = row.at(std::string(key));
        values.push_back(value.is_number() ? value.get<double>() : std::nan(""));
    }
    return values;
}

double PipelineLearning::Seed::at_end(std::string_view key) const {
    const std::vector<double> values = column(key);
    const std::size_t count = std::min(last_evaluations, values.size());
    double sum = 0.0;
    for (std::size_t i = values.size() - count; i < values.size(); ++i) {
        sum += values[i];
    }
    return sum / static_cast<double>(count);
}

/// A sentence when the policy is worse at its end than it was at its start, by more than chance: two standard errors of
/// a share over so many prompts, though these are the same at both.
void PipelineLearning::warn_of_collapse(RunResult& result) const {
    const EvaluationSettings& evaluation = scenario_.learner->evaluation;
    const std::pair<const char*, std::int64_t> shares[] = {{"learner/greedy", evaluation.greedy_prompts},
                                                           {"learner/pass@1", evaluation.sampled_prompts}};
    for (const auto& [key, prompts] : shares) {
        std::vector<double> starts;
        std::vector<double> ends;
        for (const Seed& seed : seeds_) {
            starts.push_back(seed.column(key).front());
            ends.push_back(seed.at_end(key));
        }
        const double start = quartile(starts, 2);
        const double end = quartile(ends, 2);
        if (end < start - 2.0 * std::sqrt(start * (1.0 - start) / static_cast<double>(prompts))) {
            result.warnings.push_back("The policy has become worse: " + std::string(key) + " was " +
                                      cell(start, "%.3f") + " at the start and is " + cell(end, "%.3f") +
                                      " at the end (medians over seeds). Lower learner.optimizer.learning_rate, or "
                                      "train on fresher rollouts.");
            return;
        }
    }
}

void PipelineLearning::finish(RunResult& result) {
    // Only of replications that came to their end: what an interrupted one has reached stands in its curve.
    std::erase_if(seeds_, [](const Seed& seed) { return seed.rows.empty(); });
    std::map<std::string, std::vector<double>> ends;
    for (Seed& seed : seeds_) {
        const std::vector<double> units = seed.column("compute/units");
        const std::vector<double> pass = smoothed(seed.column("learner/pass@1"));
        seed.to_target = first_passage(units, pass, scenario_.learner->target_pass_at_1).value_or(never);
        seed.to_98_percent = *first_passage(units, pass, nearly_the_best * *std::ranges::max_element(pass));
        if (weights_hashes_[seed.rows.front().at("replication").get<std::size_t>()].empty()) {
            continue;
        }
        for (const char* key :
             {"learner/pass@1", "learner/pass@4", "learner/pass@16", "learner/greedy", "learner/entropy",
              "updates/ratio_deviation", "updates/clipped_fraction", "updates/ess_token", "updates/ess_sequence"}) {
            ends[key].push_back(seed.at_end(key));
        }
        ends["learner/compute_to_target"].push_back(seed.to_target);
        ends["learner/compute_to_98_percent_of_best"].push_back(seed.to_98_percent);
    }
    if (!ends.empty()) {
        warn_of_collapse(result);
    }
    const auto replicas = static_cast<std::size_t>(scenario_.learner->replicas);
    for (const auto& [key, values] : ends) {
        for (std::size_t i = 0; i < values.size(); i += replicas) {
            const double sum = std::accumulate(&values[i], &values[i] + replicas, 0.0);
            result.samples[key].push_back(sum / static_cast<double>(replicas));
        }
        const auto reached = std::ranges::count_if(values, [](double value) { return std::isfinite(value); });
        if (reached == static_cast<std::ptrdiff_t>(values.size())) {
            result.metrics[key] = estimate(values);
        } else {
            result.undefined[key] = "it has a finite value for " + std::to_string(reached) + " of " +
                                    std::to_string(values.size()) + " seeds";
        }
    }
    if (curve_file_.is_open()) {
        curve_file_.close();
        SafeFile ordered(curve_path_);
        for (const Seed& seed : seeds_) {
            for (const Row& row : seed.rows) {
                ordered.stream() << row.dump() << '\n';
            }
        }
        ordered.commit();
    }
}

Json PipelineLearning::document() const {
    Json document;
    document["theta_0"] = theta_0_hash_;
    document["weights_hashes"] = weights_hashes_;
    document["unit_gpu_s"] = costs_.gpu_s_per_update;
    document["units_per_balanced_update"] = 1.0 + costs_.mu;
    document["target_pass@1"] = scenario_.learner->target_pass_at_1;
    Json& seeds = document["seeds"] = Json::array();
    std::vector<double> to_target;
    std::vector<double> to_98_percent;
    std::vector<double> pass_at_1;
    for (const Seed& seed : seeds_) {
        Json json;
        json["replication"] = seed.rows.front().at("replication");
        json["replica"] = seed.rows.front().at("replica");
        json["compute_to_target"] = json_number(seed.to_target);
        json["compute_to_98_percent_of_best"] = json_number(seed.to_98_percent);
        Json& curve = json["curve"] = Json::object();
        for (const auto& [key, value] : seed.rows.front().items()) {
            if (key == "replication" || key == "replica") {
                continue;
            }
            for (const Row& row : seed.rows) {
                curve[key].push_back(row.at(key));
            }
        }
        seeds.push_back(std::move(json));
        to_target.push_back(seed.to_target);
        to_98_percent.push_back(seed.to_98_percent);
        pass_at_1.push_back(seed.at_end("learner/pass@1"));
    }
    document["over_seeds"] = {{"compute_to_target", quartiles(to_target)},
                              {"compute_to_98_percent_of_best", quartiles(to_98_percent)},
                              {"pass@1", quartiles(pass_at_1)}};
    return document;
}

std::string PipelineLearning::table() const {
    std::string text = "\nLearning from theta_0 " + theta_0_hash_ +
                       "; one unit of compute is the training of one batch, " + cell(costs_.gpu_s_per_update, "%.3g") +
                       " GPU-s\n";
    text += "seed     updates    units   pass@1 start    end   pass@16    greedy   entropy   units to pass@1 " +
            cell(scenario_.learner->target_pass_at_1, "%.2f") + "\n";
    std::vector<double> to_target;
    std::vector<double> pass_at_1;
    for (std::size_t i = 0; i < seeds_.size(); ++i) {
        const Seed& seed = seeds_[i];
        std::array<char, 160> line{};
        std::snprintf(line.data(), line.size(), "%-8zu %7lld %8.0f %14.3f %6.3f %9.3f %9.3f %9.3f %22s\n", i,
                      seed.rows.back().at("update").get<long long>(), seed.column("compute/units").back(),
                      seed.column("learner/pass@1").front(), seed.at_end("learner/pass@1"),
                      seed.at_end("learner/pass@16"), seed.at_end("learner/greedy"), seed.at_end("learner/entropy"),
                      cell(seed.to_target, "%.0f").c_str());
        text += line.data();
        to_target.push_back(seed.to_target);
        pass_at_1.push_back(seed.at_end("learner/pass@1"));
    }
    if (seeds_.size() > 1) {
        text += "median   pass@1 " + cell(quartile(pass_at_1, 2), "%.3f") + " [" +
                cell(quartile(pass_at_1, 1), "%.3f") + ", " + cell(quartile(pass_at_1, 3), "%.3f") +
                "], units to the target " + cell(quartile(to_target, 2), "%.0f") + " [" +
                cell(quartile(to_target, 1), "%.0f") + ", " + cell(quartile(to_target, 3), "%.0f") +
                "]; in brackets the quartiles over seeds\n";
    }
    text += "Ends are means of the last three evaluations; learnt on " + backend_name_ + ".\n";
    return text;
}

}  // namespace millrace
