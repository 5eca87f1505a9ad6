#include "model/tasks/sort_task.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "model/tasks/alphabet.h"

namespace millrace {

namespace {

constexpr std::int64_t most_digits = 32;

}  // namespace

SortTask::SortTask(std::int64_t digits) : digits_(digits) {
    if (digits < 2 || digits > most_digits) {
        throw std::invalid_argument("The task \"sort\" has 2 to 32 digits, not " + std::to_string(digits) + ".");
    }
}

std::size_t SortTask::draw_prompt(PromptDraws& draws, std::span<Token> out) const {
    const auto digits = static_cast<std::size_t>(digits_);
    std::ranges::generate(out.first(digits), [&draws] { return alphabet::digit(draws.below(10)); });
    out[digits] = alphabet::equals;
    return digits + 1;
}

std::size_t SortTask::write_solution(std::span<const Token> prompt, std::span<Token> out) const {
    const auto digits = static_cast<std::size_t>(digits_);
    std::ranges::copy(prompt.first(digits), out.begin());
    std::ranges::sort(out.first(digits));
    return digits;
}

bool SortTask::is_prompt(std::span<const Token> prompt) const {
    return std::ssize(prompt) == digits_ + 1 && prompt.back() == alphabet::equals &&
           std::ranges::all_of(prompt.first(prompt.size() - 1), alphabet::is_digit);
}

bool SortTask::is_correct(std::span<const Token> prompt, std::span<const Token> answer) const {
    std::array<Token, most_digits> solution;
    return std::ranges::equal(std::span(solution).first(write_solution(prompt, solution)), answer);
}

}  // namespace millrace
