#include "sim/metrics/estimate.h"

#include <array>
#include <cmath>
#include <stdexcept>

namespace millrace {

double student_t_975(std::int64_t degrees) {
    if (degrees < 1) {
        throw std::invalid_argument("Student's t needs at least one degree of freedom");
    }
    // Quantiles at p = 0.975 for 1 to 30 degrees of freedom; tests compare them with Boost.Math.
    static constexpr std::array<double, 30> table = {
        12.706204736174698, 4.302652729749462, 3.182446305283708, 2.776445105197793, 2.570581835636314,
        2.446911851144969,  2.364624251592784, 2.306004135204166, 2.262157162798204, 2.228138851986273,
        2.200985160091639,  2.178812829667229, 2.160368656462792, 2.144786687917804, 2.131449545559774,
        2.119905299221255,  2.109815577833317, 2.100922040241038, 2.093024054408309, 2.085963447265863,
        2.079613844727680,  2.073873067904025, 2.068657610419048, 2.063898561628023, 2.059538552753297,
        2.055529438642873,  2.051830516480285, 2.048407141795246, 2.045229642132703, 2.042272456301237};
    if (degrees <= static_cast<std::int64_t>(table.size())) {
        return table[static_cast<std::size_t>(degrees - 1)];
    }
    // Expansion of the quantile around the normal one in 1 / degrees (Abramowitz and Stegun 26.7.5).
    const double z = 1.959963984540054;
    const double z3 = z * z * z;
    const double z5 = z3 * z * z;
    const double z7 = z5 * z * z;
    const double z9 = z7 * z * z;
    const auto n = static_cast<double>(degrees);
    const double g1 = (z3 + z) / 4.0;
    const double g2 = (5.0 * z5 + 16.0 * z3 + 3.0 * z) / 96.0;
    const double g3 = (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / 384.0;
    const double g4 = (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * z) / 92160.0;
    return z + (g1 + (g2 + (g3 + g4 / n) / n) / n) / n;
}

Estimate estimate(std::span<const double> observations) {
    Estimate result;
    result.replications = static_cast<std::int64_t>(observations.size());
    if (observations.empty()) {
        result.note = "no replication was completed";
        return result;
    }
    double sum = 0.0;
    for (const double x : observations) {
        sum += x;
    }
    const auto n = static_cast<double>(observations.size());
    result.mean = sum / n;
    if (observations.size() == 1) {
        result.note = "one replication has no interval";
        return result;
    }
    double squares = 0.0;
    for (const double x : observations) {
        squares += (x - result.mean) * (x - result.mean);
    }
    result.half_width = student_t_975(result.replications - 1) * std::sqrt(squares / (n * (n - 1.0)));
    return result;
}

Estimate closed_form(double value) {
    Estimate result;
    result.mean = value;
    result.note = "closed form";
    return result;
}

}  // namespace millrace
