#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "model/tasks/task.h"
#include "tests/model/task_text.h"

using namespace millrace;

namespace {

/// All countdown prompts, by trying all numbers with all signs but the all-negative ones.
std::set<std::string> all_countdown_prompts(int count) {
    std::set<std::string> prompts;
    const int combinations = static_cast<int>(std::pow(10, count));
    for (int combination = 0; combination < combinations; ++combination) {
        const std::string padding(static_cast<std::size_t>(count), '0');
        const std::string numbers = (padding + std::to_string(combination)).substr(std::to_string(combination).size());
        for (unsigned negative = 0; negative + 1 < 1u << count; ++negative) {
            int sum = 0;
            for (std::size_t i = 0; i < numbers.size(); ++i) {
                sum += (negative >> i & 1) != 0 ? '0' - numbers[i] : numbers[i] - '0';
            }
            prompts.insert(numbers + ',' + std::to_string(sum) + '=');
        }
    }
    return prompts;
}

std::vector<std::vector<Token>> all_sort_prompts_of_four_digits(const Task& sort) {
    std::vector<std::vector<Token>> prompts;
    for (int number = 0; number < 10'000; ++number) {
        prompts.push_back(sort.from_text(std::to_string(10'000 + number).substr(1) + "="));
    }
    return prompts;
}

/// 4.5 standard deviations of a count of `n` events of chance `p`.
double tolerance(double n, double p) {
    return 4.5 * std::sqrt(n * p * (1 - p));
}

}  // namespace

TEST_CASE("padding stands on the left, and prompts end in '='") {
    for (const TaskSettings& settings : all_settings) {
        const Task task(settings);
        for (std::uint64_t index = 0; index < 200; ++index) {
            const std::string text = task.to_text(prompt_of(task, Split::train, 1, index));
            CAPTURE(text);
            CHECK(text.back() == '=');
            const std::size_t padding = text.find_first_not_of('_');
            CHECK(text.find('_', padding) == std::string::npos);
        }
    }
}

TEST_CASE("a prompt depends on split, seed and index, not on what was drawn before") {
    for (const TaskSettings& settings : all_settings) {
        for (const Split split : splits) {
            const Task task(settings);
            std::vector<std::vector<Token>> forward;
            for (std::uint64_t index = 0; index < 50; ++index) {
                forward.push_back(prompt_of(task, split, 11, index));
            }
            const Task another(settings);
            for (std::uint64_t index = 50; index-- > 0;) {
                CHECK(prompt_of(another, split, 11, index) == forward[index]);
            }
        }
    }
    // Among 10^32 prompts two are equal only if their draws are.
    const Task task({TaskKind::sort, 32});
    std::set<std::vector<Token>> prompts;
    int drawn = 0;
    for (const Split split : splits) {
        for (const std::uint64_t seed : {0ull, 1ull, 1ull << 32, ~0ull}) {
            for (const std::uint64_t index : {0ull, 1ull, 1ull << 32, ~0ull}) {
                prompts.insert(prompt_of(task, split, seed, index));
                ++drawn;
            }
        }
    }
    CHECK(std::ssize(prompts) == drawn);
}

TEST_CASE("train and held-out prompts are never the same, whatever the seeds") {
    for (const TaskSettings& settings : all_settings) {
        const Task task(settings);
        std::set<std::vector<Token>> train;
        std::set<std::vector<Token>> held_out;
        for (std::uint64_t index = 0; index < 2000; ++index) {
            train.insert(prompt_of(task, Split::train, index % 5, index));
            held_out.insert(prompt_of(task, Split::held_out, index % 3, index));
        }
        CHECK(std::ranges::all_of(train, [&](const auto& prompt) { return task.split_of(prompt) == Split::train; }));
        CHECK(std::ranges::all_of(held_out,
                                  [&](const auto& prompt) { return task.split_of(prompt) == Split::held_out; }));
        CHECK(std::ranges::none_of(held_out, [&](const auto& prompt) { return train.contains(prompt); }));
    }
}

TEST_CASE("one prompt in eight is held out, and neither a single token nor the parity of all tells which") {
    const Task task({TaskKind::sort, 4});
    int held_out = 0;
    int held_out_even = 0;                               // the sum of the digits is even
    std::array<std::array<int, 10>, 4> held_out_with{};  // [position][digit]
    for (const std::vector<Token>& prompt : all_sort_prompts_of_four_digits(task)) {
        if (task.split_of(prompt) == Split::held_out) {
            ++held_out;
            held_out_even += std::accumulate(prompt.begin(), prompt.end(), 0) % 2 == 0 ? 1 : 0;  // so is '=', 10
            for (std::size_t position = 0; position < 4; ++position) {
                ++held_out_with[position][static_cast<std::size_t>(prompt[position])];
            }
        }
    }
    CHECK(std::abs(held_out - 10'000 / 8) < tolerance(10'000, 1.0 / 8));
    CHECK(std::abs(held_out_even - 5000 / 8) < tolerance(5000, 1.0 / 8));
    for (const auto& at_position : held_out_with) {
        for (const int count : at_position) {
            CHECK(std::abs(count - 1000 / 8) < tolerance(1000, 1.0 / 8));
        }
    }
}

TEST_CASE("a countdown in all orders of its numbers is on one side of the split") {
    for (const int count : {3, 4}) {
        const Task task({TaskKind::countdown, count});
        std::map<std::string, std::set<Split>> sides;  // of the question: the sorted numbers and the target
        int prompts_held_out = 0;
        const std::set<std::string> all = all_countdown_prompts(count);
        for (const std::string& text : all) {
            const Split side = task.split_of(padded(task, text));
            std::string question = text;
            std::ranges::sort(question.begin(), question.begin() + count);
            sides[question].insert(side);
            prompts_held_out += side == Split::held_out ? 1 : 0;
        }
        CHECK(std::ranges::all_of(sides, [](const auto& question) { return question.second.size() == 1; }));
        const auto held_out = std::ranges::count_if(
            sides, [](const auto& question) { return question.second.contains(Split::held_out); });
        const auto questions = static_cast<double>(sides.size());
        MESSAGE(count << " numbers: " << held_out << " of " << questions << " questions held out");
        CHECK(std::abs(static_cast<double>(held_out) - questions / 8) < tolerance(questions, 1.0 / 8));
        CHECK(prompts_held_out * 8 > 0.85 * static_cast<double>(all.size()));
        CHECK(prompts_held_out * 8 < 1.15 * static_cast<double>(all.size()));
    }
}

TEST_CASE("a sum and the sum of its swapped operands are on one side of the split") {
    const Task task({TaskKind::addition, 2});
    int held_out = 0;
    int apart = 0;
    const auto side = [&task](int a, int b) {
        return task.split_of(padded(task, std::to_string(a) + '+' + std::to_string(b) + '='));
    };
    for (int a = 0; a < 100; ++a) {
        for (int b = a; b < 100; ++b) {
            held_out += side(a, b) == Split::held_out ? 1 : 0;
            apart += side(a, b) != side(b, a) ? 1 : 0;
        }
    }
    CHECK(apart == 0);
    CHECK(std::abs(held_out - 5050 / 8) < tolerance(5050, 1.0 / 8));
    // Of the largest operands too, which are compared digit by digit.
    const Task long_sums({TaskKind::addition, 16});
    for (std::uint64_t index = 0; index < 200; ++index) {
        const std::string text = without("_=", long_sums.to_text(prompt_of(long_sums, Split::held_out, 2, index)));
        const std::size_t plus = text.find('+');
        const std::string swapped = text.substr(plus + 1) + '+' + text.substr(0, plus) + '=';
        CHECK(long_sums.split_of(padded(long_sums, swapped)) == Split::held_out);
    }
}

TEST_CASE("a stream repeats prompts as often as independent draws from its split do") {
    const Task task({TaskKind::sort, 4});
    const auto prompts = all_sort_prompts_of_four_digits(task);
    for (const Split split : splits) {
        const auto size = static_cast<double>(
            std::ranges::count_if(prompts, [&](const auto& prompt) { return task.split_of(prompt) == split; }));
        const int draws = static_cast<int>(size);
        std::set<std::vector<Token>> distinct;
        for (int index = 0; index < draws; ++index) {
            distinct.insert(prompt_of(task, split, 3, static_cast<std::uint64_t>(index)));
        }
        // n balls in n urns: n (1 - 1/e) urns are hit, with variance n (1/e - 2/e^2).
        const double expected = size * (1 - std::pow(1 - 1 / size, draws));
        const double deviation = std::sqrt(size * (std::exp(-1.0) - 2 * std::exp(-2.0)));
        CHECK(std::abs(static_cast<double>(distinct.size()) - expected) < 4.5 * deviation);
    }
    // Of 10^8 prompts, 20,000 draws repeat 2 or 3 in the mean (n^2 / 2 over 7/8 of them).
    const Task eight({TaskKind::sort, 8});
    std::set<std::vector<Token>> distinct;
    for (std::uint64_t index = 0; index < 20'000; ++index) {
        distinct.insert(prompt_of(eight, Split::train, 3, index));
    }
    CHECK(distinct.size() > 20'000 - 12);
}

TEST_CASE("sort draws every digit equally often at every position") {
    const Task task({TaskKind::sort, 8});
    constexpr int draws = 20'000;
    std::array<std::array<int, 10>, 8> count{};
    for (std::uint64_t index = 0; index < draws; ++index) {
        const std::vector<Token> prompt = prompt_of(task, Split::train, 4, index);
        for (std::size_t position = 0; position < 8; ++position) {
            ++count[position][static_cast<std::size_t>(prompt[position])];
        }
    }
    for (const auto& at_position : count) {
        for (const int digit_count : at_position) {
            CHECK(std::abs(digit_count - draws / 10) < tolerance(draws, 0.1));
        }
    }
}

TEST_CASE("countdown has 5527 prompts of three numbers and 97,535 of four, and all can be solved") {
    for (const auto& [count, prompts] : {std::pair{3, 5527}, std::pair{4, 97'535}}) {
        const Task task({TaskKind::countdown, count});
        const std::set<std::string> all = all_countdown_prompts(count);
        CHECK(std::ssize(all) == prompts);
        int solved = 0;
        std::vector<Token> answer(static_cast<std::size_t>(task.answer_tokens()));
        for (const std::string& text : all) {
            const std::vector<Token> prompt = padded(task, text);
            task.write_solution(prompt, answer);
            solved += truly_counted_down(text, task.to_text(answer)) && task.is_correct(prompt, answer) ? 1 : 0;
        }
        CHECK(solved == prompts);
    }
}

TEST_CASE("the two countdown streams reach every prompt, and nothing else") {
    const Task task({TaskKind::countdown, 3});
    std::set<std::string> seen;
    for (const Split split : splits) {
        // A prompt has a chance of at least 1/7000 in its split: one in 10^3 runs would miss one.
        for (std::uint64_t index = 0; index < 110'000; ++index) {
            seen.insert(without("_", task.to_text(prompt_of(task, split, 5, index))));
        }
    }
    CHECK(seen == all_countdown_prompts(3));
}

TEST_CASE("the countdown teacher has no favourite order") {
    // If the target is the sum of all numbers (none 0), then all orders are right and there is no choice of sign.
    const Task task({TaskKind::countdown, 4});
    int prompts = 0;
    std::array<int, 4> first_at{};      // [position in the prompt]
    std::array<int, 4> first_ranked{};  // [rank among the numbers]
    for (int code = 1000; code < 10'000; ++code) {
        const std::string numbers = std::to_string(code);
        std::string ascending = numbers;
        std::ranges::sort(ascending);
        if (ascending[0] == '0' || std::ranges::adjacent_find(ascending) != ascending.end()) {
            continue;
        }
        const int target = std::accumulate(numbers.begin(), numbers.end(), -4 * '0');
        const char first = solution_text(task, padded(task, numbers + "," + std::to_string(target) + "="))[0];
        ++prompts;
        ++first_at[numbers.find(first)];
        ++first_ranked[ascending.find(first)];
    }
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(std::abs(first_at[i] - prompts / 4) < tolerance(prompts, 0.25));
        CHECK(std::abs(first_ranked[i] - prompts / 4) < tolerance(prompts, 0.25));
    }
}

TEST_CASE("operands of an addition have every length equally often, and no leading zero") {
    const Task task({TaskKind::addition, 3});
    constexpr int draws = 20'000;
    std::array<std::array<int, 3>, 3> count{};  // [digits of the first - 1][of the second - 1]
    for (std::uint64_t index = 0; index < draws; ++index) {
        const std::string text = without("_=", task.to_text(prompt_of(task, Split::train, 6, index)));
        const std::size_t plus = text.find('+');
        ++count[plus - 1][text.size() - plus - 2];
        CHECK((plus == 1 || text[0] != '0'));
        CHECK((text.size() - plus == 2 || text[plus + 1] != '0'));
    }
    // Pairs of lengths 1 and 1 are only 100 prompts, of which by chance 7 in 8, give or take 3.3 in 100, are trained
    // on.
    CHECK(std::abs(count[0][0] - draws / 9) < draws / 9 * 4.5 * 0.033 / 0.875);
    for (const auto& [i, j] : {std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1}, std::pair{2, 2}}) {
        const int pairs = count[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
        CHECK(std::abs(pairs - draws / 9) < tolerance(draws, 1.0 / 9));
    }
}
