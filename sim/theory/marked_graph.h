// Timed marked graphs: what repeats in a pipeline, and how long one round of it takes at least.
//
// A vertex is a firing that recurs (an update begins, a rollout starts). An edge u -> v with a duration w and m tokens
// says that the k-th firing of v comes at least w after firing k - m of u:
//     x_k(v) >= x_{k-m}(u) + w.
// If everything fires as soon as it may, the long-run time per round is the largest ratio of duration to tokens over
// all cycles that lead to a firing (Baccelli, Cohen, Olsder, Quadrat 1992, theorem 3.28); the cycle that attains it is
// the bottleneck, and a cycle without a token is a deadlock.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace millrace {

struct MarkedGraph {
    using Vertex = std::uint32_t;
    using Activity = std::uint32_t;

    struct Edge {
        Vertex from = 0;
        Vertex to = 0;
        double duration_s = 0.0;  ///< finite, not negative
        std::int64_t tokens = 0;  ///< not negative
        Activity activity = 0;    ///< what takes the time, or what is waited for: an index into `activities`
    };

    std::vector<std::string> vertices;  ///< their names
    std::vector<std::string> activities;
    std::vector<Edge> edges;  ///< parallel edges and loops are allowed

    Vertex add_vertex(std::string name);
    Activity add_activity(std::string name);
    /// Throws std::domain_error for a duration or a number of tokens that is out of range.
    void add_edge(Vertex from, Vertex to, double duration_s, std::int64_t tokens, Activity activity);
};

/// A simple cycle of a graph, in the order in which it is walked.
struct MarkedCycle {
    std::vector<std::size_t> edges;                                              ///< indices into MarkedGraph::edges
    double duration_s = 0.0;                                                     ///< summed over its edges
    std::int64_t tokens = 0;                                                     ///< the same
    double ratio_s() const { return duration_s / static_cast<double>(tokens); }  ///< seconds per round
};

/// One token-free cycle for each group of firings that wait for each other, as the vertices along it: none of them can
/// ever fire. Empty for a live graph.
std::vector<std::vector<MarkedGraph::Vertex>> deadlocks(const MarkedGraph& graph);

/// The names along a token-free cycle, "a -> b -> a".
std::string describe_deadlock(const MarkedGraph& graph, const std::vector<MarkedGraph::Vertex>& cycle);

/// The cycle with the largest ratio; none in a graph without cycles. Howard's algorithm (Boost.Graph) proposes it; it
/// is returned only once a longest-path computation has found that no cycle has a ratio more than 1e-9 above it. Where
/// Howard's proposal fails that test, the cycle that refutes it is improved until none is left. Throws
/// std::domain_error for a graph with a deadlock, std::runtime_error when rounding makes the ratio impossible to
/// certify.
std::optional<MarkedCycle> maximum_cycle_ratio(const MarkedGraph& graph);

/// The same by own means alone: each step takes a cycle with a larger ratio than the last one, until there is none.
std::optional<MarkedCycle> maximum_cycle_ratio_by_improvement(const MarkedGraph& graph);

/// The cycle that limits how often `vertex` fires: the largest ratio over cycles from which there is a path to it. None
/// if nothing limits it.
std::optional<MarkedCycle> limiting_cycle(const MarkedGraph& graph, MarkedGraph::Vertex vertex);

/// Graphviz text, vertices in the order of the graph, the cycle (if any) in red.
void write_dot(std::ostream& out, const MarkedGraph& graph, const std::optional<MarkedCycle>& critical);

}  // namespace millrace
