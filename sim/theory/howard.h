// Boost.Graph's part in the analysis of marked graphs, behind plain types: its headers take seconds to compile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/theory/marked_graph.h"

namespace millrace {

/// For each vertex 0 .. vertices - 1 the number of its strongly connected component; components are numbered so that
/// an edge never leads to a higher number than it comes from.
std::vector<std::uint32_t> strong_components(std::size_t vertices, std::span<const MarkedGraph::Edge> edges);

/// Positions in `edges` of the cycle that Howard's algorithm finds to have the largest duration per token, in any
/// order. The graph must be strongly connected, have an edge, and no cycle without a token. A proposal: it is subject
/// to rounding, and to be certified by the caller.
std::vector<std::size_t> howard_cycle(std::size_t vertices, std::span<const MarkedGraph::Edge> edges);

}  // namespace millrace
