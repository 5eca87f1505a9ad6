// A scenario: everything one `millrace run` needs to know, decoded from a JSON file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/pipeline/config.h"
#include "sim/scenario/learner_settings.h"

namespace millrace {

struct HorizonConfig {
    std::int64_t updates = 1000;  ///< optimizer updates to simulate, warm-up included
    /// Updates to discard at the start; none means "auto": MSER-5 on the replication-averaged series.
    std::optional<std::int64_t> warmup_updates;
    /// Compute after which a run with a learner ends, in units of one update's training cost, active GPU-seconds of
    /// both roles; none: only `updates` ends it.
    std::optional<double> units;
};

struct PriceConfig {
    double usd_per_gpu_hour = 0.0;
};

/// A number that somebody published for this configuration: shown beside the simulated one, never used by the model.
struct Published {
    std::string metric;  ///< a metric key, e.g. "replay/mean"
    double value = 0.0;
    std::string source;  ///< where it stands, for the table
};

struct Scenario {
    std::string name;
    std::string description;
    std::uint64_t seed = 1;
    std::int64_t replications = 10;
    HorizonConfig horizon;
    PipelineConfig pipeline;
    std::optional<PriceConfig> price;
    std::optional<LearnerSettings> learner;
    std::vector<Published> published;
    /// The scenario with every default written out and overrides applied, as one line of JSON with sorted keys: what a
    /// result quotes and hashes. It decodes to this same scenario.
    std::string resolved_json;
};

}  // namespace millrace
