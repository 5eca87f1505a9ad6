// Addition: "95+8=" is answered by "301", the sum with its least significant digit first, as one adds by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "model/tasks/prompt_draws.h"
#include "model/tasks/token.h"

namespace millrace {

/// Two operands. The number of digits is drawn for each, uniform in 1 .. digits, so answers differ in length; then its
/// value, uniform among numbers of that length. There are 10^(2 digits) prompts. The answer is right iff it is the sum,
/// reversed, without a leading zero of the sum.
class AdditionTask {
   public:
    /// Throws std::invalid_argument unless 1 <= digits <= 16.
    explicit AdditionTask(std::int64_t digits);

    std::int64_t longest_prompt() const { return 2 * digits_ + 2; }
    std::int64_t longest_answer() const { return digits_ + 1; }

    /// Each writes at the front of `out`, which has room for the longest, and returns the number of tokens.
    std::size_t draw_prompt(PromptDraws& draws, std::span<Token> out) const;
    std::size_t write_solution(std::span<const Token> prompt, std::span<Token> out) const;

    /// The prompt with the smaller operand first, which stands for both orders.
    void make_canonical(std::span<Token> prompt) const;

    bool is_prompt(std::span<const Token> prompt) const { return sum(prompt).has_value(); }
    bool is_correct(std::span<const Token> prompt, std::span<const Token> answer) const;

   private:
    /// Nothing when it is not a prompt.
    std::optional<std::int64_t> sum(std::span<const Token> prompt) const;

    std::int64_t digits_;
};

}  // namespace millrace
