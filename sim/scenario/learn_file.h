// A learn file: everything one `millrace learn` needs to know, decoded from a JSON file. It has the keys that a
// scenario has for the same things.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/json_document.h"
#include "sim/scenario/learner_settings.h"

namespace millrace {

struct LearnFile {
    std::string name;
    std::string description;
    std::uint64_t seed = 1;
    std::int64_t replications = 4;  ///< models that learn independently from the same start
    std::int64_t updates = 1000;    ///< horizon.updates
    std::int64_t group_size = 8;    ///< groups.size: answers to one prompt
    std::int64_t batch = 64;        ///< trainers.batch: rollouts per update
    LearnerSettings learner;
    /// The file with every default written out and overrides applied, as Scenario::resolved_json.
    std::string resolved_json;
};

/// Reads a learn file and applies `path=value` overrides in their order. Throws ScenarioError with everything that is
/// wrong.
LearnFile load_learn_file(const std::string& path, const std::vector<std::string>& overrides);

/// The same for a text; `file_name` only appears in messages.
LearnFile decode_learn_file(std::string_view text, const std::string& file_name,
                            const std::vector<std::string>& overrides);

/// Whether a text or document is meant as a learn file rather than as a scenario: it has a learner and no pipeline,
/// neither workers nor a store.
bool is_learn_file(std::string_view text);
bool is_learn_file(const JsonNode& root);

}  // namespace millrace
