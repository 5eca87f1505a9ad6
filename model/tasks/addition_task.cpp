#include "model/tasks/addition_task.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/tasks/alphabet.h"

namespace millrace {

namespace {

constexpr std::int64_t most_digits = 16;  // so that sums fit 64 bits

std::size_t draw_operand(PromptDraws& draws, std::int64_t longest, std::span<Token> out) {
    const auto digits = static_cast<std::size_t>(1 + draws.below(longest));
    std::ranges::generate(out.first(digits), [&draws] { return alphabet::digit(draws.below(10)); });
    if (digits > 1) {
        out[0] = alphabet::digit(1 + draws.below(9));  // no leading zero
    }
    return digits;
}

}  // namespace

AdditionTask::AdditionTask(std::int64_t digits) : digits_(digits) {
    if (digits < 1 || digits > most_digits) {
        throw std::invalid_argument("The longest operand of the task \"addition\" has 1 to 16 digits, not " +
                                    std::to_string(digits) + ".");
    }
}

std::size_t AdditionTask::draw_prompt(PromptDraws& draws, std::span<Token> out) const {
    std::size_t length = draw_operand(draws, digits_, out);
    out[length++] = alphabet::plus;
    length += draw_operand(draws, digits_, out.subspan(length));
    out[length++] = alphabet::equals;
    return length;
}

std::optional<std::int64_t> AdditionTask::sum(std::span<const Token> prompt) const {
    const std::optional<std::int64_t> first = take_number(prompt, digits_);
    if (!first || !take_token(prompt, alphabet::plus)) {
        return std::nullopt;
    }
    const std::optional<std::int64_t> second = take_number(prompt, digits_);
    if (!second || !take_token(prompt, alphabet::equals) || !prompt.empty()) {
        return std::nullopt;
    }
    return *first + *second;
}

std::size_t AdditionTask::write_solution(std::span<const Token> prompt, std::span<Token> out) const {
    const std::size_t length = write_number(sum(prompt).value(), out);
    std::ranges::reverse(out.first(length));
    return length;
}

void AdditionTask::make_canonical(std::span<Token> prompt) const {
    const auto plus = std::ranges::find(prompt, alphabet::plus);
    const std::vector<Token> first(prompt.begin(), plus);
    const std::vector<Token> second(plus + 1, prompt.end() - 1);
    // As there are no leading zeros, the longer number is the larger one.
    if (std::pair(first.size(), first) > std::pair(second.size(), second)) {
        auto out = std::ranges::copy(second, prompt.begin()).out;
        *out++ = alphabet::plus;
        std::ranges::copy(first, out);
    }
}

bool AdditionTask::is_correct(std::span<const Token> prompt, std::span<const Token> answer) const {
    std::array<Token, most_digits + 1> solution;
    return std::ranges::equal(std::span(solution).first(write_solution(prompt, solution)), answer);
}

}  // namespace millrace
