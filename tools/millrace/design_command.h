// `millrace design`: the optimal buffer and replay ratio of the convergence theorem, in words and numbers.
#pragma once

#include <string>

namespace millrace {

struct DesignOptions {
    double mu = 1.0;               ///< imbalance, > 0
    double rho = 0.0;              ///< coupling, in [0, 1]
    double alpha = 0.2;            ///< noise sigma(s) = (s / tau)^alpha, 0 < alpha < 1/2
    double tau = 1.0;              ///< steps; cancels in every ratio
    std::string format = "table";  ///< "table", "json" or "csv"
};

/// The report as text that ends in a newline: the optimum (power_law_optimum), the on-policy comparison, and J around
/// the optimum (the csv is this last table). Throws std::invalid_argument with a full sentence when an option is out of
/// range.
std::string design_report(const DesignOptions& options);

}  // namespace millrace
