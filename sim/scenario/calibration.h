// A calibration: the numbers of a pipeline that are measured rather than decided, each with its source. `millrace plan`
// decides the rest: how many workers and trainers, which store, how often to synchronise weights.
//
// Its keys are those of a scenario without what is decided (workers.count, trainers.count, trainers.fresh_per_update,
// weight_sync.every, store, admission). A worker, and a trainer, is one GPU: the model has no tensor parallelism, so
// W + T is the number of GPUs. If an engine or a trainer spans several, calibrate it as one "GPU", price it as that
// many, and plan in such units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/json_document.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/vocabulary.h"

namespace millrace {

/// Where the numbers in and below one key of a calibration come from.
struct CalibrationSource {
    std::string path;   ///< dotted, e.g. "workers.service"
    std::string text;   ///< what was measured, or that it is assumed and why
    std::string where;  ///< publication, log or measurement; "assumed"
};

/// The quality that is to be reached.
struct CalibrationTarget {
    std::int64_t on_policy_updates = 0;  ///< that a pipeline without buffer and without staleness needs
    std::string source;
};

struct Calibration {
    std::string name;
    std::string description;
    std::vector<CalibrationSource> sources;
    /// The measured part; what is decided has placeholders (one worker, one trainer).
    Scenario measured;
    CalibrationTarget target;
    /// The file with every default written out and overrides applied, as Scenario::resolved_json.
    std::string resolved_json;
};

/// Reads a calibration and applies `path=value` overrides in their order. Throws ScenarioError with everything that is
/// wrong; a number of the file that no source covers is wrong, too (one of an override needs none).
Calibration load_calibration(const std::string& path, const std::vector<std::string>& overrides);

/// The same for a text; `file_name` only appears in messages.
Calibration decode_calibration(std::string_view text, const std::string& file_name,
                               const std::vector<std::string>& overrides);

/// Whether a text or document is meant as a calibration rather than as a scenario: it has sources and no store.
bool is_calibration(std::string_view text);
bool is_calibration(const JsonNode& root);

/// The keys of calibrations.
const Vocabulary& calibration_vocabulary();

}  // namespace millrace
