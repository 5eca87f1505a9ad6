// The learner, from its JSON form.
#pragma once

#include <cstdint>

#include "sim/scenario/json_document.h"
#include "sim/scenario/learner_settings.h"
#include "sim/scenario/vocabulary.h"

namespace millrace {

/// Rollouts of a batch or a group, prompts of an evaluation: beyond is a typing error that memory would not survive.
inline constexpr std::int64_t most_sequences_of_a_learner = 65'536;

/// The object `learner` of a file, which stands at that path. `vocabulary` is that of the file: scenarios and learn
/// files differ in how often a learner is evaluated, and in the keys that have a meaning only where there is a
/// timeline.
LearnerSettings read_learner(const JsonNode& node, const Vocabulary& vocabulary, Diagnostics& diagnostics);

/// Tokens that the longest prompt of a task and its longest answer take together, the end token included.
std::int64_t task_tokens(const TaskSettings& task);

}  // namespace millrace
