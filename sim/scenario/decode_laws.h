// Distributions, service laws and noise laws, from their JSON form.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/pipeline/config.h"
#include "sim/scenario/object_reader.h"

namespace millrace {

/// What the place of use asks of a distribution.
struct LawDemand {
    double largest = longest_s;  ///< bound of parameters and of the mean: a mistake in the unit lies beyond
    double least_mean = 0.0;
};

inline constexpr LawDemand latency_law{longest_s, 0.0};
inline constexpr LawDemand working_time_law{longest_s, shortest_s};
inline constexpr LawDemand tokens_law{1e9, 0.0};

/// The distribution at member `key`: a number (constant) or an object with a `kind`. Its mean is finite.
Distribution read_law(const ObjectReader& reader, std::string_view key, LawDemand demand, Diagnostics& diagnostics);

using WorkerService = decltype(WorkersConfig::service);
using TrainerService = decltype(TrainersConfig::service);

WorkerService read_worker_service(const JsonNode& node, Diagnostics& diagnostics);
TrainerService read_trainer_service(const JsonNode& node, Diagnostics& diagnostics);
NoiseConfig read_noise(const JsonNode& node, Diagnostics& diagnostics);

}  // namespace millrace
