#include "sim/theory/noise_law.h"

#include <cmath>
#include <sstream>
#include <stdexcept>

#include "sim/engine/portable_math.h"

namespace millrace {

namespace {

/// base^exponent for base >= 0 and exponent > 0, with the same bits on every machine: sqrt is correctly rounded by
/// IEEE 754, std::pow is not.
double power(double base, double exponent) {
    if (base == 0.0) {
        return 0.0;
    }
    if (exponent == 1.0) {
        return base;
    }
    if (exponent == 2.0) {
        return base * base;
    }
    if (exponent == 0.5) {
        return std::sqrt(base);
    }
    return portable::pow(base, exponent);
}

double evaluate(const FloorGrowthNoise& law, double staleness) {
    return law.growth == 0.0 ? law.floor : law.floor + law.growth * power(staleness, law.exponent);
}

double evaluate(const PowerLawNoise& law, double staleness) {
    return power(staleness / law.tau, 2.0 * law.alpha);
}

double evaluate(const TabulatedNoise& law, double staleness) {
    if (law.points.empty()) {
        throw std::invalid_argument("The tabulated noise law has no points; give at least one, at staleness 0.");
    }
    for (std::size_t i = 1; i < law.points.size(); ++i) {
        const auto& [right, value_right] = law.points[i];
        if (staleness < right) {
            const auto& [left, value_left] = law.points[i - 1];
            return value_left + (value_right - value_left) * ((staleness - left) / (right - left));
        }
    }
    return law.points.back().second;
}

template <typename... Parts>
[[noreturn]] void reject(const Parts&... parts) {
    std::ostringstream sentence;
    (sentence << ... << parts);
    throw std::invalid_argument(sentence.str());
}

bool in_range(double value) {
    return value >= smallest_noise_number && value <= largest_noise_number;
}

void check_law(const FloorGrowthNoise& law) {
    if (!in_range(law.floor)) {
        reject("The floor of the noise law must lie between ", smallest_noise_number, " and ", largest_noise_number,
               ", but is ", law.floor, ".");
    }
    if (!(law.growth >= 0.0 && law.growth <= largest_noise_number)) {
        reject("The growth of the noise law must lie between 0 and ", largest_noise_number, ", but is ", law.growth,
               ".");
    }
    if (!(law.exponent > 0.0 && law.exponent <= largest_noise_exponent)) {
        reject("The exponent of the noise law must be positive and at most ", largest_noise_exponent, ", but is ",
               law.exponent, ".");
    }
}

void check_law(const PowerLawNoise& law) {
    if (!(law.alpha > 0.0 && law.alpha < 0.5)) {
        reject("The exponent alpha of the power-law noise must lie strictly between 0 and 1/2, but is ", law.alpha,
               ".");
    }
    if (!in_range(law.tau)) {
        reject("The time scale tau of the power-law noise must lie between ", smallest_noise_number, " and ",
               largest_noise_number, ", but is ", law.tau, ".");
    }
}

void check_law(const TabulatedNoise& law) {
    if (law.points.empty()) {
        reject("The tabulated noise law has no points; give at least one, at staleness 0.");
    }
    if (law.points.front().first != 0.0) {
        reject("The first point of the tabulated noise law must be at staleness 0, but is at ",
               law.points.front().first, ".");
    }
    for (std::size_t i = 0; i < law.points.size(); ++i) {
        const auto& [staleness, value] = law.points[i];
        if (!in_range(value)) {
            reject("The values of the tabulated noise law must lie between ", smallest_noise_number, " and ",
                   largest_noise_number, ", but point ", i + 1, " is ", value, ".");
        }
        if (i == 0) {
            continue;
        }
        const auto& [previous_staleness, previous_value] = law.points[i - 1];
        if (!(staleness > previous_staleness && staleness <= largest_noise_number)) {
            reject("The staleness of the tabulated noise law must strictly increase up to ", largest_noise_number,
                   " at most, but point ", i + 1, " at ", staleness, " follows ", previous_staleness, ".");
        }
        if (!(value >= previous_value)) {
            reject("The values of the tabulated noise law must not decrease with staleness, but point ", i + 1, " is ",
                   value, " after ", previous_value, ".");
        }
    }
}

}  // namespace

void check(const NoiseLaw& law) {
    std::visit([](const auto& kind) { check_law(kind); }, law);
}

void check(const NoiseConfig& config) {
    check(config.sigma2);
    if (!(config.rho >= 0.0 && config.rho <= 1.0)) {
        reject("The coupling rho of the gradient noise must lie between 0 and 1, but is ", config.rho, ".");
    }
}

double sigma2(const NoiseLaw& law, double staleness) {
    if (!(staleness >= 0.0)) {
        throw std::domain_error("The noise of a sample is defined for a staleness of zero or more steps only.");
    }
    return std::visit([staleness](const auto& kind) { return evaluate(kind, staleness); }, law);
}

double sigma2_of_sample(const NoiseLaw& law, double staleness) {
    const bool vanishes_at_zero = std::holds_alternative<PowerLawNoise>(law);
    return sigma2(law, vanishes_at_zero ? staleness + 1.0 : staleness);
}

double mean_sigma2(const NoiseLaw& law, int horizon) {
    if (horizon < 1) {
        throw std::domain_error("The mean noise over a horizon needs a horizon of at least one step.");
    }
    double sum = 0.0;
    for (int staleness = 0; staleness < horizon; ++staleness) {
        sum += sigma2_of_sample(law, staleness);
    }
    return sum / horizon;
}

}  // namespace millrace
