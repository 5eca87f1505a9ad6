#include "model/tasks/task.h"

#include <algorithm>
#include <stdexcept>

namespace millrace {

namespace {

std::variant<SortTask, CountdownTask, AdditionTask> task_of(const TaskSettings& settings) {
    switch (settings.kind) {
        case TaskKind::sort:
            return SortTask(settings.size);
        case TaskKind::countdown:
            return CountdownTask(settings.size);
        case TaskKind::addition:
            return AdditionTask(settings.size);
    }
    throw std::invalid_argument("There is no task of kind " + std::to_string(static_cast<int>(settings.kind)) + ".");
}

void require_room(std::span<const Token> out, std::int64_t tokens, const char* what) {
    if (std::ssize(out) != tokens) {
        throw std::invalid_argument(std::string(what) + " of this task takes " + std::to_string(tokens) +
                                    " tokens, but there is room for " + std::to_string(out.size()) + ".");
    }
}

}  // namespace

Task::Task(const TaskSettings& settings) : kind_(task_of(settings)) {}

std::int64_t Task::prompt_tokens() const {
    return std::visit([](const auto& task) { return task.longest_prompt(); }, kind_);
}

std::int64_t Task::answer_tokens() const {
    return std::visit([](const auto& task) { return task.longest_answer() + 1; }, kind_);
}

Split Task::split_of(std::span<const Token> prompt) const {
    const std::size_t padding = prompt.size() - without_padding(prompt).size();
    std::vector<Token> canonical(prompt.begin(), prompt.end());
    std::visit([&](const auto& task) { task.make_canonical(std::span(canonical).subspan(padding)); }, kind_);
    return split_of_canonical(canonical);
}

void Task::make_prompt(Split split, std::uint64_t seed, std::uint64_t index, std::span<Token> out) const {
    require_room(out, prompt_tokens(), "A prompt");
    const bool train = split == Split::train;
    PromptDraws draws(seed, train ? LearnerPurpose::train_prompt : LearnerPurpose::held_out_prompt, index);
    do {
        const std::size_t length = std::visit([&](const auto& task) { return task.draw_prompt(draws, out); }, kind_);
        std::ranges::copy_backward(out.first(length), out.end());
        std::ranges::fill(out.first(out.size() - length), alphabet::pad);
    } while (split_of(out) != split);
}

std::int64_t Task::write_solution(std::span<const Token> prompt, std::span<Token> out) const {
    require_room(out, answer_tokens(), "An answer");
    const auto bare_prompt = without_padding(prompt);
    const std::size_t length =
        std::visit([&](const auto& task) { return task.write_solution(bare_prompt, out); }, kind_);
    out[length] = alphabet::end_of_answer;
    std::ranges::fill(out.subspan(length + 1), alphabet::pad);
    return static_cast<std::int64_t>(length) + 1;
}

bool Task::is_correct(std::span<const Token> prompt, std::span<const Token> answer) const {
    const auto bare_prompt = without_padding(prompt);
    const auto end = std::ranges::find(answer, alphabet::end_of_answer);
    if (end == answer.end()) {
        return false;
    }
    const auto bare_answer = answer.first(static_cast<std::size_t>(end - answer.begin()));
    return std::visit([&](const auto& task) { return task.is_correct(bare_prompt, bare_answer); }, kind_);
}

std::span<const Token> Task::without_padding(std::span<const Token> prompt) const {
    const auto begin = std::ranges::find_if(prompt, [](Token token) { return token != alphabet::pad; });
    const auto bare = prompt.subspan(static_cast<std::size_t>(begin - prompt.begin()));
    const bool known = std::visit([bare](const auto& task) { return task.is_prompt(bare); }, kind_);
    if (!known || std::ssize(prompt) != prompt_tokens()) {
        throw std::invalid_argument("\"" + to_text(prompt) + "\" is not a prompt of this task.");
    }
    return bare;
}

}  // namespace millrace
