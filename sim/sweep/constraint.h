// The conditions of a sweep file that say which combinations of its axes are designs.
//
//     workers.count + trainers.count == 8 and store.capacity >= 2 * trainers.batch
//
// From loosest to tightest: `or` `||`; `and` `&&`; `not` `!`; `== != < <= > >=` (one in a row); `+ -`; `* / %`; a sign;
// parentheses, numbers, 'text', true, false, and dotted paths of the scenario, defaults included. The right side of
// `and` and `or` counts only when the left side does not decide. Arithmetic is that of doubles; `a % b` has the sign of
// a. There are no conversions: text and truth values can be compared by == and != only.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/json_document.h"

namespace millrace {

/// What is wrong with a constraint, and at which of its bytes.
class ConstraintError : public std::runtime_error {
   public:
    ConstraintError(std::size_t at, const std::string& message, std::string what_to_do = "", std::string meant = "")
        : std::runtime_error(message), offset(at), hint(std::move(what_to_do)), suggestion(std::move(meant)) {}

    std::size_t offset;
    std::string hint;        ///< a sentence, or empty
    std::string suggestion;  ///< the name that was probably meant, or empty
};

class Constraint {
   public:
    /// Throws ConstraintError when `text` is not an expression, or names a path that no scenario has.
    explicit Constraint(std::string_view text);

    /// Whether the scenario satisfies it. Throws ConstraintError when it lacks a path that is asked for, when an
    /// operand is of the wrong type, or when a divisor is 0.
    bool holds(const JsonNode& scenario) const;

    /// One step of the expression: an operator over earlier terms, or an operand.
    struct Term {
        enum class Kind { number, text, truth, path, negative, opposite, binary } kind = Kind::number;
        std::size_t offset = 0;  ///< where it stands in the text
        std::string word;        ///< operator, path or text
        double number = 0.0;
        bool truth = false;
        std::size_t left = 0, right = 0;  ///< operands
    };

   private:
    std::vector<Term> terms_;  ///< operands stand before their operator; the last is the whole
};

}  // namespace millrace
