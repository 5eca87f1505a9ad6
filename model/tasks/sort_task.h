// Sorting: "31415926=" is answered by "11234569".
#pragma once

#include <cstdint>
#include <span>

#include "model/tasks/prompt_draws.h"
#include "model/tasks/token.h"

namespace millrace {

/// `digits` digits, each uniform in 0 .. 9; 10^digits prompts. The answer is right iff it is the digits in ascending
/// order.
///
/// In all tasks prompts and answers are bare: no padding, no EOS; and is_correct, write_solution and make_canonical are
/// only for prompts of which is_prompt is true.
class SortTask {
   public:
    /// Throws std::invalid_argument unless 2 <= digits <= 32.
    explicit SortTask(std::int64_t digits);

    std::int64_t longest_prompt() const { return digits_ + 1; }
    std::int64_t longest_answer() const { return digits_; }

    /// Each writes at the front of `out`, which has room for the longest, and returns the number of tokens.
    std::size_t draw_prompt(PromptDraws& draws, std::span<Token> out) const;
    std::size_t write_solution(std::span<const Token> prompt, std::span<Token> out) const;

    /// Every order of the digits is a question of its own.
    void make_canonical(std::span<Token>) const {}

    bool is_prompt(std::span<const Token> prompt) const;
    bool is_correct(std::span<const Token> prompt, std::span<const Token> answer) const;

   private:
    std::int64_t digits_;
};

}  // namespace millrace
