#include "sim/sweep/constraint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <variant>

#include "sim/sweep/sweep_vocabulary.h"

namespace millrace {
namespace {

using Term = Constraint::Term;

constexpr int deepest_nesting = 100;
constexpr std::size_t longest_text = 2000;  // so that no chain of operators overflows the stack

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

struct Token {
    enum class Kind { number, text, word, sign, end } kind = Kind::end;
    std::size_t offset = 0;
    std::string text;  ///< and, or and not for their signs, too
    double number = 0.0;
};

class Tokens {
   public:
    explicit Tokens(std::string_view text) : text_(text) { advance(); }

    const Token& next() const { return next_; }
    Token take() {
        Token taken = next_;
        advance();
        return taken;
    }

   private:
    void advance() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
            ++at_;
        }
        next_ = {Token::Kind::end, at_, "", 0.0};
        if (at_ == text_.size()) {
            return;
        }
        const char c = text_[at_];
        if (is_digit(c)) {
            const char* const begin = text_.data() + at_;
            const auto [end, fault] = std::from_chars(begin, text_.data() + text_.size(), next_.number);
            const auto length = static_cast<std::size_t>(end - begin);
            if (fault != std::errc{} || !std::isfinite(next_.number)) {
                throw ConstraintError(at_, "the number is beyond the range of a double");
            }
            take_bytes(Token::Kind::number, length);
            if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.')) {
                throw ConstraintError(next_.offset, "not a number", "a unit or a second point is not part of it");
            }
        } else if (is_letter(c)) {
            std::size_t length = 1;
            while (at_ + length < text_.size() &&
                   (is_letter(text_[at_ + length]) || is_digit(text_[at_ + length]) || text_[at_ + length] == '.')) {
                ++length;
            }
            take_bytes(Token::Kind::word, length);
        } else if (c == '\'' || c == '"') {
            const std::size_t close = text_.find(c, at_ + 1);
            if (close == std::string_view::npos) {
                throw ConstraintError(at_, "the text that begins here has no closing quote");
            }
            take_bytes(Token::Kind::text, close + 1 - at_);
            next_.text = next_.text.substr(1, next_.text.size() - 2);
        } else {
            take_sign();
        }
    }

    void take_bytes(Token::Kind kind, std::size_t length) {
        next_.kind = kind;
        next_.text = text_.substr(at_, length);
        at_ += length;
    }

    void take_sign() {
        static constexpr std::array<std::pair<std::string_view, std::string_view>, 15> signs = {{{"==", "=="},
                                                                                                 {"!=", "!="},
                                                                                                 {"<=", "<="},
                                                                                                 {">=", ">="},
                                                                                                 {"&&", "and"},
                                                                                                 {"||", "or"},
                                                                                                 {"<", "<"},
                                                                                                 {">", ">"},
                                                                                                 {"!", "not"},
                                                                                                 {"+", "+"},
                                                                                                 {"-", "-"},
                                                                                                 {"*", "*"},
                                                                                                 {"/", "/"},
                                                                                                 {"%", "%"},
                                                                                                 {"(", "("}}};
        const std::string_view rest = text_.substr(at_);
        for (const auto& [sign, name] : signs) {
            if (rest.starts_with(sign)) {
                take_bytes(Token::Kind::sign, sign.size());
                next_.text = name;
                return;
            }
        }
        if (rest.front() == ')') {
            return take_bytes(Token::Kind::sign, 1);
        }
        const std::string hint = rest.front() == '='   ? "equality is =="
                                 : rest.front() == '&' ? "both must hold: and, or &&"
                                 : rest.front() == '|' ? "one must hold: or, or ||"
                                 : rest.front() == '^' ? "there are no powers: multiply"
                                                       : "";
        throw ConstraintError(at_, "this sign is not part of a constraint", hint);
    }

    std::string_view text_;
    std::size_t at_ = 0;
    Token next_;
};

/// Recursive descent: one function per level of binding.
class Parser {
   public:
    Parser(std::string_view text, std::vector<Term>& terms) : tokens_(text), terms_(terms) {}

    void parse() {
        if (tokens_.next().kind == Token::Kind::end) {
            throw ConstraintError(0, "the constraint is empty", "for example \"workers.count + trainers.count == 8\"");
        }
        disjunction();
        if (tokens_.next().kind != Token::Kind::end) {
            const bool closes = tokens_.next().text == ")";
            throw ConstraintError(tokens_.next().offset,
                                  closes ? "a closing parenthesis without an opening one" : "expected an operator");
        }
    }

   private:
    bool comes(std::string_view word) const {
        const Token& next = tokens_.next();
        return (next.kind == Token::Kind::sign || next.kind == Token::Kind::word) && next.text == word;
    }
    bool one_of(std::initializer_list<std::string_view> words) const {
        return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return comes(word); });
    }

    std::size_t add(Term term) {
        terms_.push_back(std::move(term));
        return terms_.size() - 1;
    }
    std::size_t binary(std::size_t left, std::size_t (Parser::*level)()) {
        const Token sign = tokens_.take();
        Term term{Term::Kind::binary, sign.offset, sign.text, 0.0, false, left, 0};
        term.right = (this->*level)();
        return add(std::move(term));
    }
    std::size_t unary(Term::Kind kind, std::size_t (Parser::*level)()) {
        const Token sign = tokens_.take();
        const Nesting deeper(*this, sign.offset);
        Term term{kind, sign.offset, sign.text, 0.0, false, 0, 0};
        term.left = (this->*level)();
        return add(std::move(term));
    }

    std::size_t disjunction() {
        std::size_t left = conjunction();
        while (comes("or")) {
            left = binary(left, &Parser::conjunction);
        }
        return left;
    }
    std::size_t conjunction() {
        std::size_t left = negation();
        while (comes("and")) {
            left = binary(left, &Parser::negation);
        }
        return left;
    }
    std::size_t negation() { return comes("not") ? unary(Term::Kind::opposite, &Parser::negation) : comparison(); }
    bool comparison_comes() const { return one_of({"==", "!=", "<", "<=", ">", ">="}); }
    std::size_t comparison() {
        std::size_t left = sum();
        if (comparison_comes()) {
            left = binary(left, &Parser::sum);
        }
        if (comparison_comes()) {
            throw ConstraintError(tokens_.next().offset, "a second comparison in a row", "write a < b and b < c");
        }
        return left;
    }
    std::size_t sum() {
        std::size_t left = product();
        while (one_of({"+", "-"})) {
            left = binary(left, &Parser::product);
        }
        return left;
    }
    std::size_t product() {
        std::size_t left = sign();
        while (one_of({"*", "/", "%"})) {
            left = binary(left, &Parser::sign);
        }
        return left;
    }
    std::size_t sign() { return comes("-") ? unary(Term::Kind::negative, &Parser::sign) : operand(); }

    std::size_t operand() {
        const Token token = tokens_.take();
        if (token.kind == Token::Kind::number) {
            return add({Term::Kind::number, token.offset, "", token.number, false, 0, 0});
        }
        if (token.kind == Token::Kind::text) {
            return add({Term::Kind::text, token.offset, token.text, 0.0, false, 0, 0});
        }
        if (token.kind == Token::Kind::word && (token.text == "true" || token.text == "false")) {
            return add({Term::Kind::truth, token.offset, "", 0.0, token.text == "true", 0, 0});
        }
        if (token.kind == Token::Kind::word && token.text != "and" && token.text != "or" && token.text != "not") {
            if (PathFault fault = check_scenario_path(token.text); !fault.message.empty()) {
                throw ConstraintError(token.offset + fault.offset, fault.message, fault.hint, fault.suggestion);
            }
            return add({Term::Kind::path, token.offset, token.text, 0.0, false, 0, 0});
        }
        if (token.kind == Token::Kind::sign && token.text == "(") {
            const Nesting deeper(*this, token.offset);
            const std::size_t inner = disjunction();
            if (!comes(")")) {
                const bool at_end = tokens_.next().kind == Token::Kind::end;
                throw ConstraintError(at_end ? token.offset : tokens_.next().offset,
                                      at_end ? "this parenthesis is not closed" : "expected an operator or )");
            }
            tokens_.take();
            return inner;
        }
        throw ConstraintError(token.offset, token.kind == Token::Kind::end
                                                ? "the constraint ends where a value is expected"
                                                : "expected a number, a path or a parenthesis");
    }

    /// So that no text overflows the stack.
    struct Nesting {
        Nesting(Parser& parser, std::size_t offset) : parser_(parser) {
            if (++parser_.depth_ > deepest_nesting) {
                throw ConstraintError(offset, "more than " + std::to_string(deepest_nesting) + " nested levels");
            }
        }
        ~Nesting() { --parser_.depth_; }
        Nesting(const Nesting&) = delete;
        Nesting& operator=(const Nesting&) = delete;

       private:
        Parser& parser_;
    };

    Tokens tokens_;
    std::vector<Term>& terms_;
    int depth_ = 0;
};

// ---- evaluation ---------------------------------------------------------------------------------------------------

using Value = std::variant<double, bool, std::string>;

const char* type_of(const Value& value) {
    return std::holds_alternative<double>(value) ? "a number"
           : std::holds_alternative<bool>(value) ? "true or false"
                                                 : "text";
}

class Evaluation {
   public:
    Evaluation(const std::vector<Term>& terms, const JsonNode& scenario) : terms_(terms), scenario_(scenario) {}

    bool truth(std::size_t index) const {
        const Value result = value(index);
        if (const bool* truth = std::get_if<bool>(&result)) {
            return *truth;
        }
        throw ConstraintError(start_of(index), std::string("expected a comparison, found ") + type_of(result));
    }

   private:
    double number(std::size_t index) const {
        const Value result = value(index);
        if (const double* number = std::get_if<double>(&result)) {
            return *number;
        }
        throw ConstraintError(start_of(index), std::string("expected a number, found ") + type_of(result));
    }

    /// Where the text of a term begins.
    std::size_t start_of(std::size_t index) const {
        const Term& term = terms_[index];
        return term.kind == Term::Kind::binary ? start_of(term.left) : term.offset;
    }

    Value value(std::size_t index) const {
        const Term& term = terms_[index];
        switch (term.kind) {
            case Term::Kind::number:
                return term.number;
            case Term::Kind::text:
                return term.word;
            case Term::Kind::truth:
                return term.truth;
            case Term::Kind::path:
                return at_path(term);
            case Term::Kind::negative:
                return -number(term.left);
            case Term::Kind::opposite:
                return !truth(term.left);
            case Term::Kind::binary:
                break;
        }
        const std::string& sign = term.word;
        if (sign == "and" || sign == "or") {
            return truth(term.left) == (sign == "or") ? sign == "or" : truth(term.right);
        }
        if (sign == "==" || sign == "!=") {
            const Value left = value(term.left);
            const Value right = value(term.right);
            if (left.index() != right.index()) {
                throw ConstraintError(term.offset,
                                      std::string("compares ") + type_of(left) + " with " + type_of(right));
            }
            return (left == right) == (sign == "==");
        }
        const double left = number(term.left);
        const double right = number(term.right);
        if (sign.front() == '<' || sign.front() == '>') {
            return sign == "<"    ? left < right
                   : sign == "<=" ? left <= right
                   : sign == ">"  ? left > right
                                  : left >= right;
        }
        if ((sign == "/" || sign == "%") && right == 0.0) {
            throw ConstraintError(term.offset, "divides by 0");
        }
        const double result = sign == "+"   ? left + right
                              : sign == "-" ? left - right
                              : sign == "*" ? left * right
                              : sign == "/" ? left / right
                                            : std::fmod(left, right);
        if (!std::isfinite(result)) {
            throw ConstraintError(term.offset, "the result is beyond the range of a double");
        }
        return result;
    }

    Value at_path(const Term& term) const {
        const JsonNode* node = find_path(scenario_, term.word);
        if (node == nullptr) {
            throw ConstraintError(term.offset, "a design of this family has no " + term.word,
                                  "ask only where it has one: store.kind != 'replay_buffer' or ...");
        }
        if (node->is_number()) {
            return node->real;
        }
        if (node->kind == JsonNode::Kind::boolean) {
            return node->boolean;
        }
        if (node->kind == JsonNode::Kind::string) {
            return node->string;
        }
        throw ConstraintError(
            term.offset, term.word + " is " + describe_value(*node) + ", not a single value",
            node->find("kind") != nullptr ? "its keys go by dotted paths: " + term.word + ".kind" : "");
    }

    const std::vector<Term>& terms_;
    const JsonNode& scenario_;
};

}  // namespace

Constraint::Constraint(std::string_view text) {
    if (text.size() > longest_text) {
        throw ConstraintError(longest_text, "longer than " + std::to_string(longest_text) + " bytes",
                              "constraints of one family must all hold: write several");
    }
    Parser(text, terms_).parse();
}

bool Constraint::holds(const JsonNode& scenario) const {
    return Evaluation(terms_, scenario).truth(terms_.size() - 1);
}

}  // namespace millrace
