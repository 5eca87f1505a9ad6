#include "sim/theory/howard.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>
#include <boost/graph/strong_components.hpp>
#include <limits>

namespace millrace {
namespace {

/// Boost's own traits take improvements below 0.005, in whatever unit the weights have, for rounding: durations in
/// thousands of seconds lost their critical cycle. Here weights are scaled to at most 1 before.
struct ScaledWeights {
    using value_type = double;
    static double infinity() { return std::numeric_limits<double>::infinity(); }
    static double epsilon() { return -1e-12; }
};

struct Weights {
    double duration = 0.0;
    double tokens = 0.0;
    std::size_t position = 0;
};

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Weights>;

}  // namespace

std::vector<std::uint32_t> strong_components(std::size_t vertices, std::span<const MarkedGraph::Edge> edges) {
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> graph(vertices);
    for (const MarkedGraph::Edge& edge : edges) {
        boost::add_edge(edge.from, edge.to, graph);
    }
    std::vector<std::uint32_t> component(vertices);
    if (vertices > 0) {
        boost::strong_components(
            graph, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, graph)));
    }
    return component;
}

std::vector<std::size_t> howard_cycle(std::size_t vertices, std::span<const MarkedGraph::Edge> edges) {
    double longest = 0.0;
    for (const MarkedGraph::Edge& edge : edges) {
        longest = std::max(longest, edge.duration_s);
    }
    const double scale = longest > 0.0 ? longest : 1.0;
    Graph graph(vertices);
    for (std::size_t i = 0; i < edges.size(); ++i) {
        boost::add_edge(edges[i].from, edges[i].to,
                        Weights{edges[i].duration_s / scale, static_cast<double>(edges[i].tokens), i}, graph);
    }
    std::vector<boost::graph_traits<Graph>::edge_descriptor> cycle;
    boost::maximum_cycle_ratio(graph, boost::get(boost::vertex_index, graph), boost::get(&Weights::duration, graph),
                               boost::get(&Weights::tokens, graph), &cycle, ScaledWeights{});
    std::vector<std::size_t> positions;
    for (const auto& edge : cycle) {
        positions.push_back(graph[edge].position);
    }
    return positions;
}

}  // namespace millrace
