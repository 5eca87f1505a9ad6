#include "model/tasks/countdown_task.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/tasks/alphabet.h"
#include "model/tasks/split.h"

namespace millrace {

namespace {

/// The sum of `numbers`, those counted negative whose bit is set in `negative`.
std::int64_t signed_sum(std::span<const Token> numbers, std::uint64_t negative) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        sum += (negative >> i & 1) != 0 ? -numbers[i] : numbers[i];
    }
    return sum;
}

}  // namespace

CountdownTask::CountdownTask(std::int64_t numbers) : numbers_(numbers) {
    if (numbers != 3 && numbers != 4) {
        throw std::invalid_argument("The task \"countdown\" has 3 or 4 numbers, not " + std::to_string(numbers) + ".");
    }
}

std::size_t CountdownTask::draw_prompt(PromptDraws& draws, std::span<Token> out) const {
    // The solution is drawn first. Signs that are all negative are left out: such a sum has no number to begin with.
    const auto count = static_cast<std::size_t>(numbers_);
    std::ranges::generate(out.first(count), [&draws] { return alphabet::digit(draws.below(10)); });
    const auto negative = static_cast<std::uint64_t>(draws.below((std::int64_t{1} << numbers_) - 1));
    const std::int64_t target = signed_sum(out.first(count), negative);

    std::size_t length = count;
    out[length++] = alphabet::comma;
    if (target < 0) {
        out[length++] = alphabet::minus;
    }
    length += write_number(target < 0 ? -target : target, out.subspan(length));
    out[length++] = alphabet::equals;
    return length;
}

std::optional<CountdownTask::Puzzle> CountdownTask::read(std::span<const Token> prompt) const {
    Puzzle puzzle;
    const auto count = static_cast<std::size_t>(numbers_);
    if (prompt.size() < count || !std::ranges::all_of(prompt.first(count), alphabet::is_digit)) {
        return std::nullopt;
    }
    std::ranges::copy(prompt.first(count), puzzle.numbers.begin());
    prompt = prompt.subspan(count);
    if (!take_token(prompt, alphabet::comma)) {
        return std::nullopt;
    }
    const bool negative = take_token(prompt, alphabet::minus);
    const std::optional<std::int64_t> magnitude = take_number(prompt, 2);
    if (!magnitude || (negative && *magnitude == 0) || !take_token(prompt, alphabet::equals) || !prompt.empty()) {
        return std::nullopt;
    }
    puzzle.target = negative ? -*magnitude : *magnitude;
    return puzzle;
}

std::size_t CountdownTask::write_solution(std::span<const Token> prompt, std::span<Token> out) const {
    struct Solution {
        std::vector<Token> numbers;
        std::uint64_t negative;
    };
    const Puzzle puzzle = read(prompt).value();
    std::vector<Token> numbers(puzzle.numbers.begin(), puzzle.numbers.begin() + numbers_);
    std::ranges::sort(numbers);
    std::vector<Solution> solutions;  // at most 4! orders x 2^3 signs
    do {
        // Bit 0 stays clear: the first number has no sign.
        for (std::uint64_t negative = 0; negative < std::uint64_t{1} << numbers_; negative += 2) {
            if (signed_sum(numbers, negative) == puzzle.target) {
                solutions.push_back({numbers, negative});
            }
        }
    } while (std::ranges::next_permutation(numbers).found);
    if (solutions.empty()) {
        throw std::invalid_argument("The countdown prompt \"" + to_text(prompt) + "\" has no solution.");
    }

    // A split is decided by a hash mod 8; the quotient is free of it.
    const Solution& solution = solutions[prompt_hash(prompt) / 8 % solutions.size()];
    std::size_t length = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (i > 0) {
            out[length++] = (solution.negative >> i & 1) != 0 ? alphabet::minus : alphabet::plus;
        }
        out[length++] = solution.numbers[i];
    }
    return length;
}

void CountdownTask::make_canonical(std::span<Token> prompt) const {
    std::ranges::sort(prompt.first(static_cast<std::size_t>(numbers_)));
}

bool CountdownTask::is_correct(std::span<const Token> prompt, std::span<const Token> answer) const {
    if (std::ssize(answer) != longest_answer()) {
        return false;
    }
    const Puzzle puzzle = read(prompt).value();
    std::array<Token, 4> used{};
    std::uint64_t negative = 0;
    for (std::size_t i = 0; i < answer.size(); ++i) {
        const std::size_t number = (i + 1) / 2;
        if (i % 2 == 0) {
            used[number] = answer[i];  // no need to ask whether it is a digit: it must be one of the puzzle's numbers
        } else if (answer[i] == alphabet::minus) {
            negative |= std::uint64_t{1} << number;
        } else if (answer[i] != alphabet::plus) {
            return false;
        }
    }
    const auto count = static_cast<std::size_t>(numbers_);
    const auto numbers = std::span(puzzle.numbers).first(count);
    const auto used_numbers = std::span(used).first(count);
    return std::ranges::is_permutation(used_numbers, numbers) && signed_sum(used_numbers, negative) == puzzle.target;
}

}  // namespace millrace
