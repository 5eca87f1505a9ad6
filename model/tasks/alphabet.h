// The one alphabet that all tasks share, so that one model shape fits them all. Every token is one character of text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tasks/token.h"

namespace millrace {

namespace alphabet {

/// Token t is written as the t-th character. Checkpoints depend on the order: append, never move.
inline constexpr std::string_view characters = "0123456789=+-*(), $_";
inline constexpr std::int64_t size = 20;
static_assert(characters.size() == size);

inline constexpr Token equals = 10;
inline constexpr Token plus = 11;
inline constexpr Token minus = 12;
inline constexpr Token comma = 16;
inline constexpr Token end_of_answer = 18;  ///< EOS, written '$'
inline constexpr Token pad = 19;            ///< PAD, written '_'

constexpr Token digit(std::int64_t value) {
    return static_cast<Token>(value);
}

constexpr bool is_digit(Token token) {
    return 0 <= token && token <= 9;
}

}  // namespace alphabet

/// One character per token. Throws std::invalid_argument when a token is outside the alphabet.
std::string to_text(std::span<const Token> tokens);

/// The tokens whose text this is. Throws std::invalid_argument at a character outside the alphabet.
std::vector<Token> from_text(std::string_view text);

/// Writes a number >= 0 in decimal, most significant digit first, at the front of `out`; returns how many digits.
std::size_t write_number(std::int64_t number, std::span<Token> out);

/// Takes a decimal number of at most `most_digits` (<= 18) digits off the front of `tokens`. Nothing is returned, and
/// `tokens` is as it was, when there is no digit, one too many, or a leading zero: a number is written in one way only.
std::optional<std::int64_t> take_number(std::span<const Token>& tokens, std::int64_t most_digits);

/// Takes `expected` off the front of `tokens` if it stands there; says whether it did.
bool take_token(std::span<const Token>& tokens, Token expected);

}  // namespace millrace
