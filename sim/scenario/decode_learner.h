// The learner, from its JSON form.
#pragma once

#include <cstdint>

#include "sim/scenario/json_document.h"
#include "sim/scenario/learner_settings.h"

namespace millrace {

/// The object `learner` of a file, which stands at that path.
LearnerSettings read_learner(const JsonNode& node, Diagnostics& diagnostics);

/// Tokens that the longest prompt of a task and its longest answer take together, the end token included.
std::int64_t task_tokens(const TaskSettings& task);

}  // namespace millrace
