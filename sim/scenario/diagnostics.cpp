#include "sim/scenario/diagnostics.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t widest_excerpt = 120;

struct LineColumn {
    int line = 1;
    int column = 1;
    std::size_t line_begin = 0;
    std::size_t line_end = 0;
};

/// UTF-8 continuation bytes do not start a character.
bool starts_character(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

LineColumn locate(std::string_view text, std::size_t offset) {
    offset = std::min(offset, text.size());
    LineColumn at;
    for (std::size_t i = 0; i < offset; ++i) {
        if (text[i] == '\n') {
            ++at.line;
            at.line_begin = i + 1;
        }
    }
    for (std::size_t i = at.line_begin; i < offset; ++i) {
        at.column += starts_character(text[i]) ? 1 : 0;
    }
    at.line_end = std::min(text.find('\n', at.line_begin), text.size());
    if (at.line_end > at.line_begin && text[at.line_end - 1] == '\r') {
        --at.line_end;
    }
    return at;
}

/// How many bytes of `line` from `begin` on look like one token: a string with its quotes, or a word or number.
std::size_t token_length(std::string_view line, std::size_t begin) {
    if (begin >= line.size()) {
        return 1;
    }
    std::size_t end = begin + 1;
    if (line[begin] == '"') {
        while (end < line.size() && line[end] != '"') {
            end += line[end] == '\\' ? 2 : 1;
        }
        return std::min(end + 1, line.size()) - begin;
    }
    const auto is_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
               c == '-' || c == '$';
    };
    const bool in_number = (line[begin] >= '0' && line[begin] <= '9') || line[begin] == '-';
    while (is_word(line[begin]) && end < line.size() && (is_word(line[end]) || (in_number && line[end] == '.'))) {
        ++end;
    }
    return end - begin;
}

std::string right_aligned(const std::string& text, std::size_t width) {
    return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

/// The source line and, under it, a caret and tildes below the token at `offset`. A long line (a minified file) is cut
/// to the neighbourhood of the caret.
std::string excerpt(std::string_view text, std::size_t offset) {
    const LineColumn at = locate(text, offset);
    std::string_view line = text.substr(at.line_begin, at.line_end - at.line_begin);
    std::size_t caret = std::min(std::min(offset, text.size()) - at.line_begin, line.size());
    const std::size_t token = token_length(line, caret);
    std::string before;
    if (caret > widest_excerpt / 2 && line.size() > widest_excerpt) {
        std::size_t cut = caret - widest_excerpt / 2;
        while (cut < caret && !starts_character(line[cut])) {
            ++cut;
        }
        line.remove_prefix(cut);
        caret -= cut;
        before = "...";
    }
    std::string after;
    if (line.size() > widest_excerpt) {
        std::size_t end = widest_excerpt;
        while (end > 0 && !starts_character(line[end])) {
            --end;
        }
        line = line.substr(0, end);
        after = "...";
    }
    std::string shown;
    std::string marks(before.size(), ' ');
    for (std::size_t i = 0; i < line.size(); ++i) {
        const auto byte = static_cast<unsigned char>(line[i]);
        shown += byte < 0x20U || byte == 0x7FU ? ' ' : line[i];  // a tab would move the caret
        if (starts_character(line[i])) {
            marks += i < caret ? ' ' : i == caret ? '^' : i < caret + token ? '~' : ' ';
        }
    }
    if (caret >= line.size()) {
        marks += '^';
    }
    marks.erase(marks.find_last_not_of(' ') + 1);
    const std::string number = right_aligned(std::to_string(at.line), 3);
    const std::string margin(number.size(), ' ');
    return " " + number + " | " + before + shown + after + "\n " + margin + " | " + marks + "\n";
}

std::string join_rendered(const std::vector<ScenarioProblem>& problems) {
    std::string all;
    for (const ScenarioProblem& problem : problems) {
        all += problem.rendered;
    }
    if (!all.empty() && all.back() == '\n') {
        all.pop_back();
    }
    return all;
}

/// Whether one dotted path is the other or lies in it.
bool overlaps(std::string_view a, std::string_view b) {
    if (a.size() > b.size()) {
        std::swap(a, b);
    }
    return b.starts_with(a) && (a.empty() || a.size() == b.size() || b[a.size()] == '.');
}

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + differs});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
            }
        }
    }
    return cost[a.size()][b.size()];
}

std::string lower_case(std::string_view word) {
    std::string lower(word);
    for (char& c : lower) {
        if (c >= 'A' && c <= 'Z') {
            c = static_cast<char>(c - 'A' + 'a');
        } else if (c == '-' || c == ' ') {
            c = '_';
        }
    }
    return lower;
}

}  // namespace

ScenarioError::ScenarioError(std::vector<ScenarioProblem> problems)
    : std::runtime_error(join_rendered(problems)), problems_(std::move(problems)) {}

Diagnostics::Diagnostics(std::string file_name, std::string file_text, std::vector<std::string> overrides) {
    sources_.push_back({std::move(file_name), std::move(file_text)});
    for (std::string& argument : overrides) {
        sources_.push_back({"--set " + argument, std::move(argument)});
    }
}

std::string Diagnostics::describe(Place place) const {
    const Source& source = sources_[static_cast<std::size_t>(place.source)];
    if (place.source > 0) {
        return source.name;
    }
    const LineColumn at = locate(source.text, place.offset);
    return std::to_string(at.line) + ":" + std::to_string(at.column);
}

void Diagnostics::report(Place place, std::string key, std::string message, std::string hint, std::string suggestion,
                         FaultKind kind) {
    const bool said = std::any_of(problems_.begin(), problems_.end(), [&](const Problem& problem) {
        return problem.place == place && problem.what.key == key;
    });
    if (said) {
        return;  // what follows from the first fault of a value
    }
    const Source& source = sources_[static_cast<std::size_t>(place.source)];
    const LineColumn at = locate(source.text, place.offset);
    ScenarioProblem what;
    what.source = source.name;
    what.line = at.line;
    what.column = at.column;
    what.key = std::move(key);
    what.message = std::move(message);
    what.suggestion = std::move(suggestion);
    what.hint = std::move(hint);
    what.kind = kind;
    if (what.hint.empty() && !what.suggestion.empty()) {
        what.hint = "did you mean \"" + what.suggestion + "\"?";
    }
    // An override is one short line, so its own text says where; a file needs the line and the column.
    std::string head = place.source == 0 ? source.name + ":" + describe(place)
                                         : source.name.substr(0, std::min(source.name.find('\n'), widest_excerpt));
    what.rendered = head + ": error: " + (what.key.empty() ? "" : what.key + ": ") + what.message + "\n" +
                    excerpt(source.text, place.offset);
    if (!what.hint.empty()) {
        what.rendered += "hint: " + what.hint + "\n";
    }
    problems_.push_back({place, std::move(what)});
}

bool Diagnostics::clean(std::string_view path) const {
    return std::none_of(problems_.begin(), problems_.end(),
                        [&](const Problem& problem) { return overlaps(problem.what.key, path); });
}

void Diagnostics::throw_if_any() const {
    if (problems_.empty()) {
        return;
    }
    std::vector<Problem> sorted = problems_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Problem& a, const Problem& b) { return a.place < b.place; });
    std::vector<ScenarioProblem> problems;
    for (Problem& problem : sorted) {
        problems.push_back(std::move(problem.what));
    }
    throw ScenarioError(std::move(problems));
}

std::string nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
    const std::string lower = lower_case(word);
    const std::size_t limit = std::min(std::max<std::size_t>(2, word.size() / 3), word.size() / 2);
    std::string best;
    std::size_t best_distance = limit + 1;
    for (const std::string_view candidate : candidates) {
        const std::size_t distance = edit_distance(lower, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

}  // namespace millrace
