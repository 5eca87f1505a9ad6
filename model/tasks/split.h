// Which prompts a model is trained on and which it is only tested on. The split belongs to the prompt itself, so it
// holds for every seed and every stream; prompts that are the same question in another order are on the same side
// (Task::split_of).
#pragma once

#include <cstdint>
#include <span>

#include "model/tasks/token.h"

namespace millrace {

enum class Split { train, held_out };

/// h of the empty sequence is 0; one more token makes h into mix(h + 0x9E3779B97F4A7C15 + token), where mix is the
/// finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). The low bits of simpler hashes (FNV, say) see only the
/// low bits of the tokens, and a split by them could be a pattern that a model can learn.
std::uint64_t prompt_hash(std::span<const Token> prompt);

/// Held out iff prompt_hash(canonical_prompt) mod 8 = 0. The prompt is the whole line, padding included.
Split split_of_canonical(std::span<const Token> canonical_prompt);

}  // namespace millrace
