// `millrace plan`: how to split GPUs, what store to keep and how often to synchronise, for a calibration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/millrace/options.h"

namespace millrace {

struct PlanCommandOptions {
    InputOptions calibration;
    std::int64_t gpus = 0;
    bool at_most = false;
    std::string minimize = "usd_to_target";
    std::string store = "any";  ///< "any", "transfer_queue" or "replay_buffer"
    std::optional<double> max_staleness;
    std::optional<double> max_staleness_p99;
    std::uint64_t seed = 1;
    std::int64_t jobs = 1;
    std::string format = "table";  ///< "table" or "json"
    std::string out;               ///< folder for recommended.json and plan.json; empty: none
    bool quiet = false;
};

/// exit_failed when no design meets the limits, with the nearest one named.
int plan_command(const PlanCommandOptions& options);

}  // namespace millrace
