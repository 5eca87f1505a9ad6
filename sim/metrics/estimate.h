// An estimate from independent replications, with its confidence interval or the reason why it has none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace millrace {

struct Estimate {
    double mean = 0.0;
    std::optional<double> half_width;  ///< of the 95 % Student-t interval over replications
    std::int64_t replications = 0;     ///< 0 for a closed form
    std::string note;                  ///< why half_width is absent; empty otherwise
};

/// Mean and 95 % Student-t half-width of independent observations, one per replication. A single observation has no
/// interval and says so.
Estimate estimate(std::span<const double> observations);

/// A number that follows from a formula, not from replications.
Estimate closed_form(double value);

/// The p-quantile of Student's t with `degrees` >= 1 degrees of freedom at p = 0.975, to 1e-6. Own table and
/// expansion, so that results have the same bits on every machine.
double student_t_975(std::int64_t degrees);

}  // namespace millrace
