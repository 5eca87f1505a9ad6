#include "sim/metrics/mser5.h"

#include <limits>
#include <vector>

namespace millrace {

std::int64_t mser5(std::span<const double> series) {
    constexpr std::size_t batch = 5;
    std::vector<double> means;
    for (std::size_t first = 0; first + batch <= series.size(); first += batch) {
        double sum = 0.0;
        for (std::size_t i = 0; i < batch; ++i) {
            sum += series[first + i];
        }
        means.push_back(sum / batch);
    }
    if (means.size() < 2) {
        return 0;
    }

    // Walk from the back, keeping mean and sum of squared deviations of means[cut..] by Welford's update.
    double count = 0.0;
    double mean = 0.0;
    double deviations = 0.0;
    double best = std::numeric_limits<double>::infinity();
    std::size_t best_cut = 0;
    for (std::size_t cut = means.size(); cut-- > 0;) {
        count += 1.0;
        const double delta = means[cut] - mean;
        mean += delta / count;
        deviations += delta * (means[cut] - mean);
        const double statistic = deviations / (count * count);
        if (cut <= means.size() / 2 && statistic <= best) {
            best = statistic;
            best_cut = cut;
        }
    }
    return static_cast<std::int64_t>(best_cut * batch);
}

}  // namespace millrace
