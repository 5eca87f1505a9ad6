// Toy tasks whose answers can be checked: what a model learns by supervised fine-tuning and then by reinforcement.
//
// A task is an endless stream of prompts, a teacher that answers them, and a judge of answers. All prompts of a task
// have one length, PAD standing on the left of shorter ones, so the last token of a prompt ('=') is at a fixed
// position; to the model PAD is a token like any other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/tasks/addition_task.h"
#include "model/tasks/alphabet.h"
#include "model/tasks/countdown_task.h"
#include "model/tasks/sort_task.h"
#include "model/tasks/split.h"
#include "model/tasks/token.h"
#include "sim/scenario/learner_settings.h"

namespace millrace {

class Task {
   public:
    /// Throws std::invalid_argument when the size is out of the task's range: sort 2 to 32 digits, countdown 3 or 4
    /// numbers, addition operands of at most 1 to 16 digits.
    explicit Task(const TaskSettings& settings);

    /// Number of tokens, PAD and EOS included.
    std::int64_t vocabulary() const { return alphabet::size; }

    /// Number of tokens of every prompt, PAD included.
    std::int64_t prompt_tokens() const;

    /// The most tokens that an answer may need, EOS included.
    std::int64_t answer_tokens() const;

    /// Which split a prompt [prompt_tokens] belongs to. All orders of the numbers of a countdown, with one target, are
    /// one question, and so are a + b and b + a: one side has all of them. To sort other orders of the same digits is
    /// another question, and the task itself: there each prompt is held out or trained on by itself.
    /// Throws std::invalid_argument when `prompt` is not one of this task.
    Split split_of(std::span<const Token> prompt) const;

    /// Writes prompt `index` of the stream of `split` to `out` [prompt_tokens]: a function of the arguments only.
    /// Prompts are drawn until one belongs to the split (split_of); the two splits draw independently. Prompts of one
    /// stream are independent, so they repeat as chance has it.
    void make_prompt(Split split, std::uint64_t seed, std::uint64_t index, std::span<Token> out) const;

    /// Writes one correct answer, EOS and then PAD to `out` [answer_tokens]; returns its length, EOS included.
    /// Throws std::invalid_argument when `prompt` is not one of this task.
    std::int64_t write_solution(std::span<const Token> prompt, std::span<Token> out) const;

    /// Whether `answer` up to and including its first EOS answers `prompt`; what follows is ignored, and without EOS it
    /// is wrong. Any tokens may stand in an answer. Throws std::invalid_argument when `prompt` is not one of this task.
    bool is_correct(std::span<const Token> prompt, std::span<const Token> answer) const;

    /// Text has one character per token: EOS is '$' and PAD is '_'. Both throw std::invalid_argument at what is not in
    /// the alphabet.
    std::string to_text(std::span<const Token> tokens) const { return millrace::to_text(tokens); }
    std::vector<Token> from_text(std::string_view text) const { return millrace::from_text(text); }

   private:
    std::span<const Token> without_padding(std::span<const Token> prompt) const;

    std::variant<SortTask, CountdownTask, AdditionTask> kind_;
};

}  // namespace millrace
