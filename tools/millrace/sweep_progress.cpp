#include "tools/millrace/sweep_progress.h"

#include <unistd.h>

#include <cmath>
#include <iostream>

#include "tools/millrace/counted.h"

namespace millrace {
namespace {

constexpr std::chrono::minutes between_lines{1};

std::string replications_text(const ReplicationPlan& plan) {
    if (plan.least == plan.most) {
        return counted(plan.least, "replication") + " of each";
    }
    return std::to_string(plan.least) + " to " + std::to_string(plan.most) + " replications of each, at most " +
           std::to_string(plan.budget) + " in all";
}

}  // namespace

SweepProgressReport::SweepProgressReport(bool wanted)
    : wanted_(wanted), in_place_(isatty(STDERR_FILENO) != 0), line_("sweeping", wanted) {}

void SweepProgressReport::begin(const Sweep& sweep, const std::string& folder, std::int64_t rows_there) const {
    if (wanted_) {
        std::cerr << "Sweeping " << counted(sweep.designs.size(), "design")
                  << (sweep.most_added > 0
                          ? " and up to " + std::to_string(sweep.most_added) + " more in gaps of the frontier"
                          : "")
                  << ", " << replications_text(sweep.replications) << "; " << counted(rows_there, "row")
                  << " already in " << folder << ".\n";
    }
}

void SweepProgressReport::show(const SweepProgress& progress) {
    const std::string remark = (progress.round > 1 ? "round " + std::to_string(progress.round) + ", " : "") +
                               counted(progress.blocks_left, "block") + " to begin";
    const auto now = std::chrono::steady_clock::now();
    if (in_place_) {
        line_.show(progress.share, remark);
    } else if (wanted_ && now - said_ >= between_lines) {
        said_ = now;
        std::cerr << "Sweeping: " << std::lround(100.0 * progress.share) << " %, " << remark << std::endl;
    }
}

}  // namespace millrace
