#include "model/tasks/split.h"

namespace millrace {

namespace {

std::uint64_t mix(std::uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

}  // namespace

std::uint64_t prompt_hash(std::span<const Token> prompt) {
    std::uint64_t hash = 0;
    for (const Token token : prompt) {
        hash = mix(hash + 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(token));
    }
    return hash;
}

Split split_of_canonical(std::span<const Token> canonical_prompt) {
    return prompt_hash(canonical_prompt) % 8 == 0 ? Split::held_out : Split::train;
}

}  // namespace millrace
