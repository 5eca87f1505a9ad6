// Student's t at any level. Written on portable_math.h, so that decisions and intervals have the same bits on every
// x86-64 machine.
#pragma once

#include <cstdint>

namespace millrace {

/// P(T > t) for Student's t with `degrees` >= 1 degrees of freedom, to about 1e-12 relative up to 1e4 degrees, also far
/// out in the tail.
double student_t_tail(double t, std::int64_t degrees);

/// The t with P(T > t) = tail, for 0 < tail < 1. Throws std::invalid_argument for anything else.
double student_t_quantile(double tail, std::int64_t degrees);

}  // namespace millrace
