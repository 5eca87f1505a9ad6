// Checks of the arguments of closed forms.
#pragma once

#include <cmath>
#include <sstream>
#include <stdexcept>

namespace millrace {

/// Throws std::domain_error("The <what> must be <condition>, but is <value>.") unless `holds`.
inline void require(bool holds, const char* what, const char* condition, double value) {
    if (!holds) {
        std::ostringstream sentence;
        sentence << "The " << what << " must be " << condition << ", but is " << value << ".";
        throw std::domain_error(sentence.str());
    }
}

inline void require_positive(double value, const char* what) {
    require(value > 0.0 && std::isfinite(value), what, "positive and finite", value);
}

inline void require_not_negative(double value, const char* what) {
    require(value >= 0.0 && std::isfinite(value), what, "finite and not negative", value);
}

}  // namespace millrace
