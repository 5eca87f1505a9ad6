#include "model/tasks/task.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "tests/model/task_text.h"

using namespace millrace;

// ---- answers -------------------------------------------------------------------------------------------------------

TEST_CASE("lengths of prompts and answers") {
    const Task sort({TaskKind::sort, 8});
    CHECK(sort.vocabulary() == 20);
    CHECK(sort.prompt_tokens() == 9);  // eight digits and '='
    CHECK(sort.answer_tokens() == 9);  // eight digits and EOS
    CHECK(Task({TaskKind::countdown, 3}).answer_tokens() == 6);
    CHECK(Task({TaskKind::countdown, 4}).answer_tokens() == 8);
    CHECK(Task({TaskKind::countdown, 4}).prompt_tokens() == 9);  // "0999,-27="
    CHECK(Task({TaskKind::addition, 3}).prompt_tokens() == 8);   // "999+999="
    CHECK(Task({TaskKind::addition, 3}).answer_tokens() == 5);   // "8991$"
}

TEST_CASE("the teacher's answers are correct, to the judge and to one who reads the text") {
    for (const TaskSettings& settings : all_settings) {
        const Task task(settings);
        CAPTURE(settings.size);
        for (const Split split : splits) {
            for (std::uint64_t index = 0; index < 500; ++index) {
                const std::vector<Token> prompt = prompt_of(task, split, 7, index);
                const std::string text = task.to_text(prompt);
                const std::string answer = solution_text(task, prompt);
                CAPTURE(text);
                CAPTURE(answer);
                CHECK(judged_correct(task, prompt, answer));
                CHECK(truly_correct(settings.kind, text, answer));
            }
        }
    }
}

TEST_CASE("an answer with one token replaced, removed or inserted is judged as one who reads the text judges it") {
    for (const TaskSettings& settings : all_settings) {
        const Task task(settings);
        for (std::uint64_t index = 0; index < 20; ++index) {
            const std::vector<Token> prompt = prompt_of(task, Split::train, 8, index);
            const std::string text = task.to_text(prompt);
            const std::string answer = solution_text(task, prompt);
            const auto check = [&](const std::string& changed) {
                CAPTURE(text);
                CAPTURE(changed);
                const std::size_t end = changed.find('$');  // what follows EOS is no part of the answer
                CHECK(judged_correct(task, prompt, changed) ==
                      truly_correct(settings.kind, text, changed.substr(0, end == std::string::npos ? end : end + 1)));
            };
            for (std::size_t position = 0; position <= answer.size(); ++position) {
                for (const char token : alphabet::characters) {
                    check(answer.substr(0, position) + token + answer.substr(position));
                    if (position < answer.size()) {
                        check(answer.substr(0, position) + token + answer.substr(position + 1));
                    }
                }
                if (position < answer.size()) {
                    check(answer.substr(0, position) + answer.substr(position + 1));
                }
            }
        }
    }
}

TEST_CASE("known answers") {
    const Task sort({TaskKind::sort, 8});
    CHECK(solution_text(sort, padded(sort, "31415926=")) == "11234569$");

    const Task addition({TaskKind::addition, 3});
    CHECK(solution_text(addition, padded(addition, "95+8=")) == "301$");
    CHECK(solution_text(addition, padded(addition, "0+0=")) == "0$");
    CHECK(solution_text(addition, padded(addition, "999+1=")) == "0001$");
    CHECK_FALSE(judged_correct(addition, padded(addition, "95+8="), "3010$"));  // a leading zero of the sum
    CHECK_FALSE(judged_correct(addition, padded(addition, "95+8="), "103$"));   // not reversed

    const Task countdown({TaskKind::countdown, 3});
    const std::vector<Token> prompt = padded(countdown, "635,8=");
    for (const char* right : {"6-3+5$", "5-3+6$", "6+5-3$", "5+6-3$"}) {
        CHECK(judged_correct(countdown, prompt, right));
    }
    for (const char* wrong : {"6+3-5$", "8$", "6+5-3", "6+2$", "3-5+6+4$", "4+4+0$", "-3+6+5$", "(6-3)+5$", "6-3+5=$",
                              "_6-3+5$", "6-3+5_$", "$6-3+5$", "$", "", "635$"}) {
        CAPTURE(wrong);
        CHECK_FALSE(judged_correct(countdown, prompt, wrong));
    }
}

TEST_CASE("of all strings of five plausible tokens, countdown accepts those that use the numbers and hit the target") {
    const Task task({TaskKind::countdown, 3});
    const std::string tokens = "6354+-*(_";
    for (const std::string text : {"635,8=", "366,-3=", "060,0="}) {
        const std::vector<Token> prompt = padded(task, text);
        int accepted = 0;
        int disagreements = 0;
        for (int code = 0; code < 9 * 9 * 9 * 9 * 9; ++code) {
            std::string answer;
            for (int rest = code, i = 0; i < 5; ++i, rest /= 9) {
                answer += tokens[static_cast<std::size_t>(rest % 9)];
            }
            answer += '$';
            const bool judged = judged_correct(task, prompt, answer);
            accepted += judged ? 1 : 0;
            disagreements += judged != truly_counted_down(text, answer) ? 1 : 0;
        }
        CAPTURE(text);
        CHECK(disagreements == 0);
        CHECK((accepted > 0) == (text != "060,0="));  // there is no '0' among the tokens
    }
}

TEST_CASE("an answer ends at its first EOS, and without one it is wrong") {
    for (const TaskSettings& settings : all_settings) {
        const Task task(settings);
        const std::vector<Token> prompt = prompt_of(task, Split::train, 9, 0);
        const std::string answer = solution_text(task, prompt);
        CHECK_FALSE(judged_correct(task, prompt, without("$", answer)));
        CHECK_FALSE(judged_correct(task, prompt, ""));
        CHECK_FALSE(judged_correct(task, prompt, "$"));
        CHECK(judged_correct(task, prompt, answer + "$"));
        CHECK(judged_correct(task, prompt, answer + "_77+"));
    }
}

TEST_CASE("tokens outside the vocabulary make an answer wrong, no more") {
    constexpr Token lowest = std::numeric_limits<Token>::min();
    constexpr Token highest = std::numeric_limits<Token>::max();
    for (const TaskSettings& settings : all_settings) {
        const Task task(settings);
        const std::vector<Token> prompt = prompt_of(task, Split::train, 9, 0);
        for (const Token stranger : {lowest, Token{-1}, Token{20}, highest}) {
            std::vector<Token> answer = task.from_text(solution_text(task, prompt));
            answer[0] = stranger;
            CHECK_FALSE(task.is_correct(prompt, answer));
        }
    }
}

// ---- text and errors -----------------------------------------------------------------------------------------------

TEST_CASE("text and tokens are the same thing written twice") {
    const Task task({TaskKind::sort, 8});
    std::vector<Token> every(20);
    std::iota(every.begin(), every.end(), 0);
    CHECK(task.to_text(every) == "0123456789=+-*(), $_");
    CHECK(task.from_text(task.to_text(every)) == every);
    CHECK(task.from_text("").empty());
    CHECK(task.to_text(std::array{alphabet::equals, alphabet::plus, alphabet::minus, alphabet::comma,
                                  alphabet::end_of_answer, alphabet::pad}) == "=+-,$_");
    CHECK_THROWS_AS(task.from_text("12a"), std::invalid_argument);
    CHECK_THROWS_AS(task.to_text(std::array{Token{20}}), std::invalid_argument);
    CHECK_THROWS_AS(task.to_text(std::array{Token{-1}}), std::invalid_argument);
}

TEST_CASE("a task of a size out of range is refused") {
    for (const TaskSettings& settings :
         {TaskSettings{TaskKind::sort, 1}, TaskSettings{TaskKind::sort, 33}, TaskSettings{TaskKind::sort, -8},
          TaskSettings{TaskKind::countdown, 2}, TaskSettings{TaskKind::countdown, 5},
          TaskSettings{TaskKind::addition, 0}, TaskSettings{TaskKind::addition, 17}}) {
        CHECK_THROWS_AS(Task{settings}, std::invalid_argument);
    }
    CHECK_THROWS_WITH_AS(Task({TaskKind::countdown, 5}), "The task \"countdown\" has 3 or 4 numbers, not 5.",
                         std::invalid_argument);
}

TEST_CASE("what is not a prompt of the task is refused, never judged") {
    const auto refuses = [](const Task& task, const std::vector<Token>& prompt) {
        std::vector<Token> answer(static_cast<std::size_t>(task.answer_tokens()));
        CHECK_THROWS_AS(task.write_solution(prompt, answer), std::invalid_argument);
        CHECK_THROWS_AS(task.is_correct(prompt, answer), std::invalid_argument);
    };
    const Task sort({TaskKind::sort, 4});
    for (const char* text : {"123=", "12345", "1+34=", "12345=", "____", "=====", "12_3="}) {
        refuses(sort, padded(sort, text));
    }
    refuses(sort, {});
    refuses(sort, {1, 2, 3, 99, alphabet::equals});
    const Task addition({TaskKind::addition, 2});
    for (const char* text : {"12+3", "12+=", "+3=", "123+4=", "4+123=", "01+2=", "1+02=", "1-2=", "1+2==", "1+2=3"}) {
        refuses(addition, padded(addition, text));
    }
    refuses(addition, addition.from_text("1+2="));  // not padded
    const Task countdown({TaskKind::countdown, 3});
    for (const char* text : {"635=", "635,=", "635,8", "63,8=", "6351,8=", "635,08=", "635,-0=", "635,123=", "635,8=_",
                             "6+5,8=", "635,+8=", "635,--8="}) {
        refuses(countdown, padded(countdown, text));
    }
    // A puzzle without solution is a puzzle, but nobody can answer it.
    std::vector<Token> answer(6);
    CHECK_THROWS_AS(countdown.write_solution(padded(countdown, "111,99="), answer), std::invalid_argument);
    CHECK_FALSE(judged_correct(countdown, padded(countdown, "111,99="), "1+1+1$"));
}

TEST_CASE("a prompt or an answer is written only where it fits exactly") {
    for (const TaskSettings& settings : all_settings) {
        const Task task(settings);
        const std::vector<Token> prompt = prompt_of(task, Split::train, 1, 0);
        for (const std::int64_t too_much : {-1, 1}) {
            std::vector<Token> out(static_cast<std::size_t>(task.prompt_tokens() + too_much));
            CHECK_THROWS_AS(task.make_prompt(Split::train, 1, 0, out), std::invalid_argument);
            out.resize(static_cast<std::size_t>(task.answer_tokens() + too_much));
            CHECK_THROWS_AS(task.write_solution(prompt, out), std::invalid_argument);
        }
    }
}
