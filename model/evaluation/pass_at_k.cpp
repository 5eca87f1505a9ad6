#include "model/evaluation/pass_at_k.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace millrace {

double pass_at_k(std::int64_t n, std::int64_t c, std::int64_t k) {
    if (c < 0 || c > n) {
        throw std::invalid_argument("Of " + std::to_string(n) + " samples " + std::to_string(c) +
                                    " cannot be correct.");
    }
    if (k < 1 || k > n) {
        throw std::invalid_argument("pass@" + std::to_string(k) + " cannot be estimated from " + std::to_string(n) +
                                    " samples: k must be 1 to the number of samples.");
    }
    if (k > n - c) {
        return 1.0;  // every subset holds a correct sample
    }
    // Draw k samples one by one, without replacement, until the first correct one: the chances of its being the first,
    // the second, ... are all positive, so their sum loses nothing even where pass@k is tiny and 1 - (ratio of
    // binomials) would. C(n - c, k) / C(n, k) = C(n - k, c) / C(n, c): drawn and correct may be exchanged, and the
    // shorter sum is taken.
    const std::int64_t draws = std::min(k, c);
    const std::int64_t correct = std::max(k, c);
    double found = 0.0;
    double none_yet = 1.0;
    for (std::int64_t drawn = 0; drawn < draws; ++drawn) {
        const auto left = static_cast<double>(n - drawn);
        found += none_yet * static_cast<double>(correct) / left;
        none_yet *= static_cast<double>(n - drawn - correct) / left;
    }
    return std::min(found, 1.0);
}

}  // namespace millrace
