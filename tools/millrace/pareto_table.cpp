#include "tools/millrace/pareto_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace millrace {
namespace {

using Cells = std::vector<std::string>;

/// To so many significant digits; large numbers in whole ones rather than with an exponent: 104 and not 1e+02.
std::string number(double value, int digits) {
    const double size = std::abs(value);
    char text[64];
    if (size >= std::pow(10.0, digits) && size < 1e9) {
        std::snprintf(text, sizeof text, "%.0f", value);
    } else {
        std::snprintf(text, sizeof text, "%.*g", digits, value);
    }
    return text;
}

std::string with_half_width(double mean, const std::optional<double>& half_width) {
    return number(mean, 5) + (half_width ? " +- " + number(*half_width, 2) : "");
}

/// Columns as wide as they need to be, the last one unpadded.
std::string aligned(const std::vector<Cells>& rows) {
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const Cells& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string text;
    for (const Cells& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

std::string values_text(const std::vector<std::pair<std::string, std::string>>& values) {
    std::string text;
    for (const auto& [path, value] : values) {
        text += (text.empty() ? "" : " ") + path + "=" + value;
    }
    return text.empty() ? "(as in its base)" : text;
}

/// Best in the first objective first.
std::vector<std::size_t> frontier_in_order(const Sweep& sweep, const ParetoReport& report) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < report.designs.size(); ++i) {
        if (is_of_interest(report.designs[i])) {
            order.push_back(i);
        }
    }
    const SweepObjective& first = sweep.objectives.front();
    const auto value = [&](std::size_t i) {
        return toward_minimum(report.designs[i].metrics.at(first.metric).mean, first.minimize);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return value(a) < value(b); });
    return order;
}

std::string frontier_rows(const Sweep& sweep, const ParetoReport& report) {
    Cells header = {"design", "family", "values"};
    for (const SweepObjective& objective : sweep.objectives) {
        header.push_back(objective.metric + (objective.minimize ? " (min)" : " (max)"));
    }
    header.insert(header.end(), {"n", "frontier"});
    std::vector<Cells> rows = {header};
    for (const std::size_t i : frontier_in_order(sweep, report)) {
        const ParetoDesign& design = report.designs[i];
        Cells row = {sweep.designs[i].id, sweep.designs[i].family, values_text(sweep.designs[i].values)};
        for (const SweepObjective& objective : sweep.objectives) {
            const Estimate& estimate = design.metrics.at(objective.metric);
            row.push_back(with_half_width(estimate.mean, estimate.half_width));
        }
        const bool decided = design.decision.membership == Membership::in;
        row.push_back(std::to_string(design.replications));
        row.push_back(std::string(decided                          ? "in"
                                  : design.decision.leads_by_means ? "undecided, on by means"
                                                                   : "undecided, off by means") +
                      (sweep.designs[i].refined ? ", refined" : ""));
        rows.push_back(std::move(row));
    }
    return aligned(rows);
}

std::string hypervolume_rows(const Sweep& sweep, const ParetoReport& report) {
    std::string text = "Hypervolume up to (";
    for (std::size_t j = 0; j < report.reference.size(); ++j) {
        text += (j == 0 ? "" : ", ") + number(report.reference[j], 5);
    }
    text += "), corrected for the bias of picking the best means:\n";
    const auto cells = [](const std::string& name, const HypervolumeEstimate& volume) {
        return Cells{"  " + name, with_half_width(volume.mean, volume.half_width),
                     volume.note.empty() ? "" : "(" + volume.note + ")"};
    };
    std::vector<Cells> rows = {cells(sweep.name, report.hypervolume)};
    if (report.families.size() > 1) {
        for (const auto& [family, volume] : report.families) {
            rows.push_back(cells(family + " alone", volume));
        }
    }
    return text + aligned(rows);
}

std::string proposals(const Sweep& sweep, const Refinement& refinement) {
    std::string text;
    for (const ProposedDesign& proposal : refinement.proposed) {
        text += "  " + proposal.design.family + ": " + values_text(proposal.design.values) + ", between " +
                sweep.designs[proposal.gap.from].id + " and " + sweep.designs[proposal.gap.to].id + "\n";
    }
    text = text.empty() ? "" : "\nThe widest gaps of the frontier would be halved by\n" + text;
    const auto added =
        std::count_if(sweep.designs.begin(), sweep.designs.end(), [](const Design& design) { return design.refined; });
    if (added < sweep.most_added && refinement.proposed.empty() && !refinement.refused.empty()) {
        const RefusedGap& widest = refinement.refused.front();
        text += "\nOf " + std::to_string(sweep.most_added) + " designs to add " + std::to_string(added) +
                " were: no gap is left that can be halved (the widest, between " + sweep.designs[widest.gap.from].id +
                " and " + sweep.designs[widest.gap.to].id + ": " + widest.reason + ").\n";
    }
    return text;
}

}  // namespace

std::string failures_text(const Sweep& sweep, const ParetoReport& report) {
    constexpr int most_shown = 5;
    std::string text;
    int count = 0;
    for (std::size_t i = 0; i < report.designs.size(); ++i) {
        if (!report.designs[i].error.empty() && ++count <= most_shown) {
            text += "  " + sweep.designs[i].id + "  " + values_text(sweep.designs[i].values) + ": " +
                    report.designs[i].error + "\n";
        }
    }
    return text + (count > most_shown ? "  and " + std::to_string(count - most_shown) + " more\n" : "");
}

std::string pareto_table(const Sweep& sweep, const ParetoReport& report) {
    std::size_t count[3] = {0, 0, 0};
    for (const ParetoDesign& design : report.designs) {
        if (design.decision.compared) {
            ++count[static_cast<std::size_t>(design.decision.membership)];
        }
    }
    const auto of = [&](Membership membership) { return std::to_string(count[static_cast<std::size_t>(membership)]); };
    const auto added =
        std::count_if(sweep.designs.begin(), sweep.designs.end(), [](const Design& design) { return design.refined; });
    std::string text;
    if (const std::int64_t incomplete = incomplete_designs(report); incomplete > 0) {
        text +=
            "INCOMPLETE: " + std::to_string(incomplete) + " designs have still to be run, so nothing here is final.\n";
    }
    text += sweep.name + ": " + std::to_string(sweep.designs.size()) + " designs" +
            (added == 0 ? "" : ", " + std::to_string(added) + " of them refined from gaps of the frontier") +
            "; on the frontier " + of(Membership::in) + ", not on it " + of(Membership::out) + ", undecided " +
            of(Membership::undecided) + "\n";
    if (count[0] + count[1] > 0) {
        text += "With a probability of " + number(100.0 * report.confidence, 6) + " % all of this is right";
        const std::size_t compared = count[0] + count[1] + count[2];
        text += compared == sweep.designs.size()
                    ? ". "
                    : " among the " + std::to_string(compared) + " designs that have values to compare. ";
    }
    text += "Half-widths are 95 % for each number alone.\n";
    if (added > 0) {
        text +=
            "(Refined designs were placed by the replications that also judge them, which the probability leaves "
            "out of account.)\n";
    }
    text += "\n";
    if (count[0] + count[2] > 0) {
        text += frontier_rows(sweep, report) + "\n";
    }
    text += hypervolume_rows(sweep, report);
    const std::string failures = failures_text(sweep, report);
    if (!failures.empty()) {
        const std::size_t failed = sweep.designs.size() - count[0] - count[1] - count[2];
        text += "\nNot compared, " + std::to_string(failed) + " designs (all are in pareto.json):\n" + failures;
    }
    return text + proposals(sweep, report.refinement);
}

}  // namespace millrace
