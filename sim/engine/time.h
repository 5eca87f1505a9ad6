// Simulated time: int64 nanoseconds in two strong types, a point and a span.
//
// Integer ticks make simultaneous events exactly simultaneous and results independent of the compiler's use of
// fused multiply-add. Seconds exist only where numbers enter or leave the simulator.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace millrace {

__extension__ typedef __int128 Int128;  // for sums of times over many workers; __extension__: not ISO C++

struct Duration {
    std::int64_t ns = 0;

    constexpr auto operator<=>(const Duration&) const = default;
    constexpr Duration& operator+=(Duration other) {
        ns += other.ns;
        return *this;
    }
    constexpr Duration& operator-=(Duration other) {
        ns -= other.ns;
        return *this;
    }
};

constexpr Duration operator+(Duration a, Duration b) {
    return {a.ns + b.ns};
}
constexpr Duration operator-(Duration a, Duration b) {
    return {a.ns - b.ns};
}
constexpr Duration operator*(std::int64_t n, Duration d) {
    return {n * d.ns};
}

struct Time {
    std::int64_t ns = 0;

    constexpr auto operator<=>(const Time&) const = default;
};

/// Stands for "never": nothing can happen in the last of all nanoseconds.
inline constexpr Time end_of_time{std::numeric_limits<std::int64_t>::max()};

/// Throws std::overflow_error after 292 years.
constexpr Time operator+(Time t, Duration d) {
    Time sum;
    if (__builtin_add_overflow(t.ns, d.ns, &sum.ns)) [[unlikely]] {
        throw std::overflow_error(
            "the simulated time has passed 292 years: the service laws are too slow for the horizon");
    }
    return sum;
}
constexpr Time operator-(Time t, Duration d) {
    return {t.ns - d.ns};
}
constexpr Duration operator-(Time a, Time b) {
    return {a.ns - b.ns};
}

constexpr double seconds(Duration d) {
    return static_cast<double>(d.ns) * 1e-9;
}
constexpr double seconds(Time t) {
    return static_cast<double>(t.ns) * 1e-9;
}

/// Nearest nanosecond. Throws std::range_error for NaN, a negative span or one beyond 146 years, which no service
/// time means.
inline Duration duration_from_ns(double ns) {
    if (!(ns >= 0.0 && ns < 4.6e18)) {
        throw std::range_error("a duration must lie between 0 and 4.6e9 seconds");
    }
    return {static_cast<std::int64_t>(ns + 0.5)};
}

inline Duration duration_from_seconds(double s) {
    return duration_from_ns(s * 1e9);
}

}  // namespace millrace
