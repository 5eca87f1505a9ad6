// What the tests of the tasks share: prompts and answers as text, and judges of answers that read only text.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "model/tasks/task.h"

namespace millrace {

inline const std::vector<TaskSettings> all_settings = {
    {TaskKind::sort, 2},      {TaskKind::sort, 8},     {TaskKind::sort, 32},    {TaskKind::countdown, 3},
    {TaskKind::countdown, 4}, {TaskKind::addition, 1}, {TaskKind::addition, 3}, {TaskKind::addition, 16}};
inline constexpr std::array<Split, 2> splits = {Split::train, Split::held_out};

inline std::vector<Token> prompt_of(const Task& task, Split split, std::uint64_t seed, std::uint64_t index) {
    std::vector<Token> prompt(static_cast<std::size_t>(task.prompt_tokens()));
    task.make_prompt(split, seed, index, prompt);
    return prompt;
}

/// The prompt that reads `text`, padded as the task pads.
inline std::vector<Token> padded(const Task& task, const std::string& text) {
    const auto length = static_cast<std::size_t>(task.prompt_tokens());
    return task.from_text(std::string(length - std::min(length, text.size()), '_') + text);
}

inline std::string without(const std::string& characters, std::string text) {
    std::erase_if(text, [&](char c) { return characters.find(c) != std::string::npos; });
    return text;
}

inline std::string solution_text(const Task& task, const std::vector<Token>& prompt) {
    std::vector<Token> answer(static_cast<std::size_t>(task.answer_tokens()));
    const auto length = static_cast<std::size_t>(task.write_solution(prompt, answer));
    REQUIRE(length <= answer.size());
    CHECK(std::ranges::count(answer, alphabet::end_of_answer) == 1);
    CHECK(answer[length - 1] == alphabet::end_of_answer);
    CHECK(std::ranges::count(answer, alphabet::pad) == std::ssize(answer) - static_cast<std::ptrdiff_t>(length));
    return task.to_text(std::span(answer).first(length));
}

inline bool judged_correct(const Task& task, const std::vector<Token>& prompt, const std::string& answer) {
    return task.is_correct(prompt, task.from_text(answer));
}

// ---- judges that share nothing with the tasks ----------------------------------------------------------------------

inline bool truly_sorted(const std::string& prompt, std::string answer) {
    std::string digits = without("_=", prompt);
    std::ranges::sort(digits);
    return answer == digits + "$";
}

inline bool truly_added(const std::string& prompt, const std::string& answer) {
    std::istringstream stream(without("_", prompt));
    long long a = 0, b = 0;
    stream >> a >> b;  // "+8" is read as a signed number
    const std::string sum = std::to_string(a + b);
    return answer == std::string(sum.rbegin(), sum.rend()) + "$";
}

/// Reads "6-3+5" as the signed numbers 6, -3, 5.
inline bool truly_counted_down(const std::string& prompt, const std::string& answer) {
    const std::string bare = without("_", prompt);
    const std::size_t comma = bare.find(',');
    std::string numbers = bare.substr(0, comma);
    const int target = std::stoi(bare.substr(comma + 1));
    if (answer.size() != 2 * numbers.size() || answer.back() != '$') {
        return false;
    }
    std::string used;
    for (std::size_t i = 0; i + 1 < answer.size(); ++i) {
        const char c = answer[i];
        if (i % 2 == 0 ? c < '0' || c > '9' : c != '+' && c != '-') {
            return false;
        }
        if (i % 2 == 0) {
            used += c;
        }
    }
    std::ranges::sort(numbers);
    std::ranges::sort(used);
    std::istringstream stream(answer);
    int sum = 0;
    for (int number = 0; stream >> number;) {
        sum += number;
    }
    return used == numbers && sum == target;
}

inline bool truly_correct(TaskKind kind, const std::string& prompt, const std::string& answer) {
    switch (kind) {
        case TaskKind::sort:
            return truly_sorted(prompt, answer);
        case TaskKind::countdown:
            return truly_counted_down(prompt, answer);
        case TaskKind::addition:
            return truly_added(prompt, answer);
    }
    return false;
}

}  // namespace millrace
