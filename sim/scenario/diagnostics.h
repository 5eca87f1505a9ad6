// What is wrong with a scenario, where it stands, and what was probably meant.
#pragma once

#include <compare>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// A byte of one of the texts a scenario is made of: source 0 is the file, source k the k-th `--set` argument.
struct Place {
    int source = 0;
    std::size_t offset = 0;

    auto operator<=>(const Place&) const = default;
};

/// What would have to change.
enum class FaultKind {
    of_scenario,  ///< this value or another: they do not go together
    of_value,     ///< this value: it is of the wrong type, out of the range of its key, or no known name
    of_object,    ///< the object with the key: it has no such key
};

/// One error, ready to be printed.
struct ScenarioProblem {
    std::string source;      ///< the file's name, or the `--set` argument
    int line = 0;            ///< from 1
    int column = 0;          ///< from 1, in characters
    std::string key;         ///< dotted path; empty for an error of syntax or of the document as a whole
    std::string message;     ///< what was expected and what was found
    std::string suggestion;  ///< the valid name that was probably meant, or empty
    std::string hint;        ///< what to do, a sentence; empty if there is nothing to say
    std::string rendered;    ///< all of it with the source line and a caret
    FaultKind kind = FaultKind::of_scenario;
};

/// Everything wrong with a scenario in the order of the text. what() is the report for people:
///
///     file.json:3:15: error: workers.count: expected a whole number of at least 1, found -1
///       3 |     "count": -1,
///         |              ^
class ScenarioError : public std::runtime_error {
   public:
    explicit ScenarioError(std::vector<ScenarioProblem> problems);
    const std::vector<ScenarioProblem>& problems() const { return problems_; }

   private:
    std::vector<ScenarioProblem> problems_;
};

/// Collects errors while a scenario is read, so that all of them are reported at once.
class Diagnostics {
   public:
    Diagnostics(std::string file_name, std::string file_text, std::vector<std::string> overrides);

    const std::string& text(int source) const { return sources_[static_cast<std::size_t>(source)].text; }
    int override_count() const { return static_cast<int>(sources_.size()) - 1; }

    /// Notes an error about `key` at `place`. Without a hint, a suggestion makes one ("did you mean ...?").
    void report(Place place, std::string key, std::string message, std::string hint = "", std::string suggestion = "",
                FaultKind kind = FaultKind::of_scenario);

    /// "3:7", or "--set workers.count=3" for a place in an override.
    std::string describe(Place place) const;

    bool empty() const { return problems_.empty(); }
    std::size_t count() const { return problems_.size(); }
    /// Whether no error concerns `path`, something in it, or something around it.
    bool clean(std::string_view path) const;
    void throw_if_any() const;

   private:
    struct Source {
        std::string name;
        std::string text;
    };
    struct Problem {
        Place place;
        ScenarioProblem what;
    };

    std::vector<Source> sources_;
    std::vector<Problem> problems_;
};

/// The candidate nearest to `word` by Damerau-Levenshtein distance, if it is near enough to be a slip (at most 2 edits
/// or a third of the word, and never more than half of it); else empty. Ties go to the first.
std::string nearest_name(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace millrace
