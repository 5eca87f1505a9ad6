// Countdown: "635,8=" (make 8 of 6, 3 and 5) is answered by "6-3+5", or "5-3+6", or any other expression that holds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "model/tasks/prompt_draws.h"
#include "model/tasks/token.h"

namespace millrace {

/// Three or four numbers of one digit, 0 .. 9, then ',', the target and '='. There are 5527 prompts of three numbers
/// and 97,535 of four; all can be solved.
///
/// The answer is right iff it uses each number exactly once, joined by '+' and '-', in any order, and its value is the
/// target. The first number has no sign, and there are no products and no parentheses: so all answers have equal
/// length (5 or 7 tokens), and the search is over signs, not over grammar.
class CountdownTask {
   public:
    /// Throws std::invalid_argument unless there are 3 or 4 numbers.
    explicit CountdownTask(std::int64_t numbers);

    std::int64_t longest_prompt() const { return numbers_ + 5; }  // the target is at most "-27"
    std::int64_t longest_answer() const { return 2 * numbers_ - 1; }

    /// Each writes at the front of `out`, which has room for the longest, and returns the number of tokens.
    std::size_t draw_prompt(PromptDraws& draws, std::span<Token> out) const;

    /// One of the correct answers, each as likely as the others; which one is a function of the prompt. So a model
    /// learns from examples that many orders are accepted, and has a choice that reinforcement can narrow.
    /// Throws std::invalid_argument when there is no solution.
    std::size_t write_solution(std::span<const Token> prompt, std::span<Token> out) const;

    /// The prompt with its numbers in ascending order, which stands for the question in all orders.
    void make_canonical(std::span<Token> prompt) const;

    bool is_prompt(std::span<const Token> prompt) const { return read(prompt).has_value(); }
    bool is_correct(std::span<const Token> prompt, std::span<const Token> answer) const;

   private:
    struct Puzzle {
        std::array<Token, 4> numbers{};  ///< the first `numbers_` count
        std::int64_t target = 0;
    };
    std::optional<Puzzle> read(std::span<const Token> prompt) const;

    std::int64_t numbers_;
};

}  // namespace millrace
