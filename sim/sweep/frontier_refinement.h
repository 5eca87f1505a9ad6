// New designs for a sweep, in the middle of the widest gaps of its frontier.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/pareto/pareto_front.h"
#include "sim/sweep/design.h"

namespace millrace {

/// Two neighbours on a frontier, as indices of designs.
struct FrontierGap {
    std::size_t from = 0;
    std::size_t to = 0;
    double width = 0.0;  ///< distance in objective space, each objective in units of the frontier's extent
};

struct ProposedDesign {
    FrontierGap gap;
    std::string family;
    std::vector<std::pair<std::string, std::string>> values;  ///< as Design::values
};

struct RefusedGap {
    FrontierGap gap;
    std::string reason;  ///< a clause, e.g. "8 and 9 of trainers.count have no whole number between them"
};

struct Refinement {
    std::vector<ProposedDesign> proposed;  ///< widest gap first
    std::vector<RefusedGap> refused;       ///< gaps that are wider than the last one proposed but cannot be bisected
    std::string note;                      ///< why there can be none at all; empty otherwise
};

/// At most `most` designs, one per gap. In a proposal each axis in which the neighbours differ has the middle of their
/// values: the geometric mean when both are positive and one is four times the other or more (such axes are stepped by
/// factors), else the arithmetic one; rounded to a whole number when both values are whole. Of several designs at one
/// point, the pair that differs in the fewest axes is taken.
///
/// A gap is refused when its ends belong to different families, differ in an axis that is no number, have no value
/// between them, or when the design in the middle is there already. Constraints and the sense of a scenario are not
/// checked: the sweep's decoder does that. With three objectives there is no order along a frontier, so there are no
/// gaps, and the note says so.
///
/// `points` are of all designs, less being better; `front` the indices of those on the frontier.
Refinement refine_frontier(std::span<const Design> designs, std::span<const ObjectivePoint> points,
                           std::span<const std::size_t> front, std::size_t objectives, std::size_t most);

}  // namespace millrace
