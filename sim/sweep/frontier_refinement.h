// New designs for a sweep, in the middle of the widest gaps of its frontier.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
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
    Design design;
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

/// A design of a family with these values, or a clause that says why there is none.
struct MadeDesign {
    std::optional<Design> design;
    std::string reason;
};
using DesignMaker = std::function<MadeDesign(const std::string& family, const AxisValues& values)>;

struct RefinementRules {
    std::size_t most = 0;      ///< designs to propose, at most one per gap
    double least_share = 0.0;  ///< gaps below this share of the widest one that can be bisected are left alone
};

/// Of the frontier's gaps, the widest are bisected. With two objectives gaps lie between neighbours along the frontier;
/// with three they are the edges of the Euclidean minimum spanning tree of its points, each objective in units of the
/// frontier's extent. Several designs at one point are one end of a gap: the pair that differs in the fewest axes is
/// taken.
///
/// A proposal has in each axis in which the neighbours differ the middle of their values: the geometric mean when both
/// are positive and one is four times the other or more (such axes are stepped by factors), else the arithmetic one.
/// Where both values are whole the middle is, too: where it has to be rounded, all ways to round these axes down or up
/// are tried, nearest to the middle first, until `make` makes a design, and then the arithmetic means if some were
/// geometric. So axes that a constraint ties together, such as two counts with a constant sum, find each other. The
/// columns of a zip go together anyway: they get the row nearest to the middle that has the same share of the way in
/// each of them, to a twentieth.
///
/// A gap is refused when its ends belong to different families, differ in an axis that is no number or in the seed, or
/// when nothing that was tried is a design that is not there already.
///
/// `points` are of all designs, less being better; `front` the indices of those on the frontier.
Refinement refine_frontier(std::span<const Design> designs, std::span<const ObjectivePoint> points,
                           std::span<const std::size_t> front, std::size_t objectives, const RefinementRules& rules,
                           const DesignMaker& make);

}  // namespace millrace
