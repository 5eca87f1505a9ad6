#include "model/tasks/alphabet.h"

#include <algorithm>
#include <stdexcept>

namespace millrace {

std::string to_text(std::span<const Token> tokens) {
    std::string text;
    text.reserve(tokens.size());
    for (const Token token : tokens) {
        if (token < 0 || token >= alphabet::size) {
            throw std::invalid_argument("Token " + std::to_string(token) + " has no text: tokens are 0 to " +
                                        std::to_string(alphabet::size - 1) + ".");
        }
        text += alphabet::characters[static_cast<std::size_t>(token)];
    }
    return text;
}

std::vector<Token> from_text(std::string_view text) {
    std::vector<Token> tokens;
    tokens.reserve(text.size());
    for (const char character : text) {
        const std::size_t position = alphabet::characters.find(character);
        if (position == std::string_view::npos) {
            throw std::invalid_argument("The text \"" + std::string(text) + "\" has a character that is no token: '" +
                                        character + "'. The tokens are \"" + std::string(alphabet::characters) + "\".");
        }
        tokens.push_back(static_cast<Token>(position));
    }
    return tokens;
}

std::size_t write_number(std::int64_t number, std::span<Token> out) {
    std::size_t length = 0;
    do {
        out[length++] = alphabet::digit(number % 10);
        number /= 10;
    } while (number > 0);
    std::ranges::reverse(out.first(length));
    return length;
}

std::optional<std::int64_t> take_number(std::span<const Token>& tokens, std::int64_t most_digits) {
    const auto end = std::ranges::find_if_not(tokens, alphabet::is_digit);
    const auto digits = tokens.first(static_cast<std::size_t>(end - tokens.begin()));
    if (digits.empty() || std::ssize(digits) > most_digits || (digits.size() > 1 && digits[0] == alphabet::digit(0))) {
        return std::nullopt;
    }
    std::int64_t number = 0;
    for (const Token digit : digits) {
        number = 10 * number + digit;
    }
    tokens = tokens.subspan(digits.size());
    return number;
}

bool take_token(std::span<const Token>& tokens, Token expected) {
    if (tokens.empty() || tokens[0] != expected) {
        return false;
    }
    tokens = tokens.subspan(1);
    return true;
}

}  // namespace millrace
