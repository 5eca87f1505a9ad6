#include "tools/millrace/design_command.h"

#include <array>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "sim/theory/compute_ratio.h"
#include "sim/theory/noise_law.h"
#include "sim/theory/optimal_design.h"

namespace millrace {

namespace {

constexpr std::array<double, 5> factors = {0.25, 0.5, 1.0, 2.0, 4.0};

/// J at factors of the optimal horizon and replay ratio.
struct Neighbour {
    double horizon_factor;
    double replay_ratio_factor;
    double horizon;
    double replay_ratio;
    double workers_per_trainer;
    double relative_cost;  ///< J / J*
};

struct Findings {
    OptimalDesign optimum;
    double workers_per_trainer;  ///< mu / y*: an asynchronous pipeline's replay ratio is mu T / W
    double gamma;
    /// Compared like with like: both pipelines with the noise of integer staleness, each sample one step old when the
    /// update that uses it is done. The continuous law of `optimum` is 0 at staleness 0 and cannot price on-policy.
    OptimalDesign whole_steps;
    double on_policy_cost;
    std::vector<Neighbour> neighbours;
};

void check(const DesignOptions& options) {
    // Far beyond any pipeline, and narrow enough that no formula over- or underflows.
    if (!(options.mu >= 1e-6 && options.mu <= 1e6)) {
        std::ostringstream sentence;
        sentence << "The imbalance mu must be between 1e-6 and 1e6, but is " << options.mu << ".";
        throw std::invalid_argument(sentence.str());
    }
    check(NoiseConfig{.sigma2 = PowerLawNoise{.alpha = options.alpha, .tau = options.tau}, .rho = options.rho});
    if (!(options.alpha >= 1e-3)) {
        std::ostringstream sentence;
        sentence << "The noise exponent alpha must be at least 0.001, for below it the best horizon has no end that "
                    "matters, but is "
                 << options.alpha << ".";
        throw std::invalid_argument(sentence.str());
    }
    if (!(options.tau >= 1e-9 && options.tau <= 1e9)) {
        std::ostringstream sentence;
        sentence << "The time scale tau of the noise must be between 1e-9 and 1e9 steps, but is " << options.tau << ".";
        throw std::invalid_argument(sentence.str());
    }
    if (options.format != "table" && options.format != "json" && options.format != "csv") {
        throw std::invalid_argument("The format must be table, json or csv, but is \"" + options.format + "\".");
    }
}

Findings find(const DesignOptions& options) {
    const PowerLawNoise law{.alpha = options.alpha, .tau = options.tau};
    const OptimalDesign optimum = power_law_optimum(law, options.mu, options.rho);
    const double workers_per_trainer = options.mu / optimum.replay_ratio;
    Findings findings{.optimum = optimum,
                      .workers_per_trainer = workers_per_trainer,
                      .gamma = compute_ratio(workers_per_trainer, 1.0, options.mu),
                      .whole_steps = whole_step_optimum(law, options.mu, options.rho),
                      .on_policy_cost = on_policy_cost(law, options.mu, options.rho),
                      .neighbours = {}};
    for (const double horizon_factor : factors) {
        for (const double replay_ratio_factor : factors) {
            const double horizon = horizon_factor * optimum.horizon;
            const double replay_ratio = replay_ratio_factor * optimum.replay_ratio;
            const double cost =
                design_cost(continuous_mean_sigma2(law, horizon), horizon, replay_ratio, options.mu, options.rho);
            findings.neighbours.push_back({.horizon_factor = horizon_factor,
                                           .replay_ratio_factor = replay_ratio_factor,
                                           .horizon = horizon,
                                           .replay_ratio = replay_ratio,
                                           .workers_per_trainer = options.mu / replay_ratio,
                                           .relative_cost = cost / optimum.cost});
        }
    }
    return findings;
}

std::string number(double value, int digits = 4) {
    std::ostringstream text;
    text << std::setprecision(digits) << value;
    return text.str();
}

std::string as_table(const DesignOptions& options, const Findings& findings) {
    const OptimalDesign& optimum = findings.optimum;
    const double saving = findings.whole_steps.cost / findings.on_policy_cost;
    std::ostringstream text;
    text << "Optimal design for mu = " << number(options.mu) << ", rho = " << number(options.rho)
         << " and gradient noise sigma(s) = (s/" << number(options.tau) << ")^" << number(options.alpha) << "\n\n"
         << "  staleness horizon    N/R  " << number(optimum.horizon) << " steps\n"
         << "  replay ratio         B/R  " << number(optimum.replay_ratio) << "\n"
         << "  buffer in batches    N/B  " << number(optimum.horizon / optimum.replay_ratio) << "\n"
         << "  workers per trainer  W/T  " << number(findings.workers_per_trainer) << "\n"
         << "  compute ratio      gamma  " << number(findings.gamma) << "\n\n";
    if (optimum.horizon >= 1.0) {
        text << "Keep the rollouts of the last " << number(optimum.horizon, 3) << " updates";
    } else {
        text << "The horizon is below one update: keep no more than the fresh rollouts";
    }
    text << " and use each " << number(optimum.replay_ratio, 3) << " times on average.\n"
         << "An asynchronous pipeline, whose replay ratio is mu T/W, does so with "
         << number(findings.workers_per_trainer, 3) << " inference workers per trainer\n(of 8 GPUs, "
         << number(8.0 * findings.workers_per_trainer / (1.0 + findings.workers_per_trainer), 2) << " generate and "
         << number(8.0 / (1.0 + findings.workers_per_trainer), 2) << " train).\n\n"
         << "Compute to a given gradient norm: " << number(saving, 3) << " of the on-policy pipeline's";
    if (saving >= 1.0) {
        text << ", so replay does not pay here by this bound";
    }
    text << ".\n(Compared with whole steps, horizon " << number(findings.whole_steps.horizon, 10)
         << " and replay ratio " << number(findings.whole_steps.replay_ratio, 3)
         << ", against B = R without a buffer. In both, the\nnoise of a sample is that of one step more than its "
            "staleness, for the law is 0 at staleness 0. The\nbound charges 1/N for repeats: sampling is with "
            "replacement.)\n\n"
         << "J around the optimum, as a multiple of J there (rows: N/R, columns: B/R)\n\n"
         << std::setw(10) << "";
    for (std::size_t column = 0; column < factors.size(); ++column) {
        text << std::setw(10) << number(findings.neighbours[column].replay_ratio, 3);
    }
    text << "\n" << std::fixed << std::setprecision(3);
    for (std::size_t row = 0; row < factors.size(); ++row) {
        const Neighbour* cells = &findings.neighbours[row * factors.size()];
        text << std::setw(10) << number(cells->horizon, 3);
        for (std::size_t column = 0; column < factors.size(); ++column) {
            text << std::setw(10) << cells[column].relative_cost;
        }
        text << "\n";
    }
    return text.str();
}

std::string as_json(const DesignOptions& options, const Findings& findings) {
    nlohmann::ordered_json report;
    report["mu"] = options.mu;
    report["rho"] = options.rho;
    report["noise"] = {{"kind", "power_law"}, {"alpha", options.alpha}, {"tau", options.tau}};
    report["optimum"] = {{"horizon", findings.optimum.horizon},
                         {"replay_ratio", findings.optimum.replay_ratio},
                         {"buffer_batches", findings.optimum.horizon / findings.optimum.replay_ratio},
                         {"workers_per_trainer", findings.workers_per_trainer},
                         {"gamma", findings.gamma},
                         {"cost", findings.optimum.cost}};
    report["against_on_policy"] = {{"horizon", findings.whole_steps.horizon},
                                   {"replay_ratio", findings.whole_steps.replay_ratio},
                                   {"cost", findings.whole_steps.cost},
                                   {"on_policy_cost", findings.on_policy_cost},
                                   {"relative_cost", findings.whole_steps.cost / findings.on_policy_cost}};
    report["around"] = nlohmann::ordered_json::array();
    for (const Neighbour& neighbour : findings.neighbours) {
        report["around"].push_back({{"horizon", neighbour.horizon},
                                    {"replay_ratio", neighbour.replay_ratio},
                                    {"workers_per_trainer", neighbour.workers_per_trainer},
                                    {"relative_cost", neighbour.relative_cost}});
    }
    return report.dump(2) + "\n";
}

std::string as_csv(const Findings& findings) {
    std::ostringstream text;
    text << "horizon_factor,replay_ratio_factor,horizon,replay_ratio,workers_per_trainer,relative_cost\n"
         << std::setprecision(9);
    for (const Neighbour& neighbour : findings.neighbours) {
        text << neighbour.horizon_factor << ',' << neighbour.replay_ratio_factor << ',' << neighbour.horizon << ','
             << neighbour.replay_ratio << ',' << neighbour.workers_per_trainer << ',' << neighbour.relative_cost
             << '\n';
    }
    return text.str();
}

}  // namespace

std::string design_report(const DesignOptions& options) {
    check(options);
    const Findings findings = find(options);
    if (options.format == "json") {
        return as_json(options, findings);
    }
    return options.format == "csv" ? as_csv(findings) : as_table(options, findings);
}

}  // namespace millrace
