#include "tools/millrace/pipeline_learning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "model/warm_start.h"
#include "sim/run/formulas.h"
#include "tools/millrace/interrupt.h"
#include "tools/millrace/learner_seeds.h"
#include "tools/millrace/safe_file.h"

namespace millrace {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// A backend that lives as long as the learner on it.
template <typename P>
struct LearnerOnBackend {
    LearnerOnBackend(std::unique_ptr<Backend<P>> its, const PipelineLearnerSettings& settings,
                     const std::vector<std::uint64_t>& seeds, const std::vector<float>& theta_0)
        : backend(std::move(its)), learner(*backend, settings, seeds, theta_0) {}

    std::unique_ptr<Backend<P>> backend;
    PipelineLearner<P> learner;
};

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
      curves_(scenario),
      weights_hashes_(static_cast<std::size_t>(scenario.replications)) {
    if (!curve.empty()) {
        static_cast<void>(SafeFile(curve));  // says what is wrong with the path
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
    if (!curve.empty()) {  // only now: an older one stays when learning cannot begin
        curve_file_.open(curve, std::ios::binary | std::ios::trunc);
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
        const std::lock_guard lock(curves_mutex_);
        curves_.complete(replication);
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
    const std::lock_guard lock(curves_mutex_);
    const std::string rows = curves_.add(replication, point);
    if (curve_file_.is_open()) {
        curve_file_ << rows << std::flush;
    }
}

// ---- what it comes to -----------------------------------------------------------------------------------------------

void PipelineLearning::finish(RunResult& result) {
    curves_.put_into(result);
    if (curve_file_.is_open()) {
        curve_file_.close();
        SafeFile ordered(curve_path_);
        ordered.stream() << curves_.text();
        ordered.commit();
    }
}

nlohmann::ordered_json PipelineLearning::document() const {
    nlohmann::ordered_json document;
    document["theta_0"] = theta_0_hash_;
    document["weights_hashes"] = weights_hashes_;
    document["unit_gpu_s"] = costs_.gpu_s_per_update;
    document["units_per_balanced_update"] = 1.0 + costs_.mu;
    document["target_pass@1"] = scenario_.learner->target_pass_at_1;
    document["seeds"] = curves_.models();
    document["over_seeds"] = curves_.quartiles();
    return document;
}

std::string PipelineLearning::table() const {
    return "\nLearning from theta_0 " + theta_0_hash_ + "; one unit of compute is the training of one batch, " +
           cell(costs_.gpu_s_per_update, "%.3g") + " GPU-s\n" + curves_.table() + "; learnt on " + backend_kind_ +
           ".\n";
}

}  // namespace millrace
