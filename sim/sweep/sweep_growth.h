// The designs that a sweep adds to those of its file, in the gaps of its frontier ("refine").
//
// When every design has its first replications, `least` of each, designs are added in waves: the middles of the widest
// gaps of the frontier of the means so far. Each gets its `least`, and the next wave follows. What is added is a
// function of the rows of these first replications and of nothing else, so all processes that look at the same rows add
// the same designs, whatever else they have run.
//
// A wave is a quarter of what may be added, at least four designs, so that there is work for several threads, and
// leaves out gaps less than half as wide as the widest: its halves come first.
//
// Designs are chosen by means that decide on them, too, and the correction of decide_membership() takes them as if they
// had stood in the file. Choosing the place of a design looks at its neighbours' noise and not at its own, so this is
// harmless as long as many replications follow, but it is no proof.
#pragma once

#include <optional>
#include <vector>

#include "sim/sweep/design.h"
#include "sim/sweep/frontier_refinement.h"
#include "sim/sweep/row_collection.h"

namespace millrace {

/// Makes designs by the rules of the sweep's file: its families' bases, "set" and constraints. What is impossible, no
/// design of the family, or there already is refused with the reason.
DesignMaker design_maker(const Sweep& sweep);

/// The designs of the next wave, to stand behind those that are there; empty when the sweep has all its designs. None:
/// that follows from rows which are missing.
std::optional<std::vector<Design>> next_wave(const Sweep& sweep, const RowCollection& rows);

/// Adds a wave to the sweep and to what the rows know.
void add_wave(Sweep& sweep, std::vector<Design> wave, RowCollection& rows);

/// Adds wave after wave. Returns false when it stopped because rows are missing.
bool grow(Sweep& sweep, RowCollection& rows);

}  // namespace millrace
