#include "sim/theory/marked_graph.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>

#include "sim/theory/arguments.h"
#include "sim/theory/howard.h"

namespace millrace {
namespace {

using Vertex = MarkedGraph::Vertex;
using Edge = MarkedGraph::Edge;

constexpr std::uint32_t absent = std::numeric_limits<std::uint32_t>::max();
/// A cycle whose ratio is this much larger, relatively, refutes a proposed maximum.
constexpr long double certified_to = 1e-9L;

/// One strongly connected component, its vertices numbered from 0.
struct Component {
    std::size_t vertices = 0;
    std::vector<Edge> edges;
    std::vector<std::size_t> number;  ///< of each edge, in the whole graph
};

/// Those components that contain a cycle.
std::vector<Component> cyclic_components(const MarkedGraph& graph) {
    const std::size_t vertices = graph.vertices.size();
    const std::vector<std::uint32_t> component = strong_components(vertices, graph.edges);
    std::vector<Component> components(vertices);
    std::vector<std::uint32_t> inside(vertices);  // a vertex's number within its component
    for (std::size_t v = 0; v < vertices; ++v) {
        inside[v] = static_cast<std::uint32_t>(components[component[v]].vertices++);
    }
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
        Edge edge = graph.edges[i];
        if (component[edge.from] != component[edge.to]) {
            continue;
        }
        Component& home = components[component[edge.from]];
        edge.from = inside[edge.from];
        edge.to = inside[edge.to];
        home.edges.push_back(edge);
        home.number.push_back(i);
    }
    std::erase_if(components, [](const Component& candidate) { return candidate.edges.empty(); });
    return components;
}

/// The edges, given in any order, in walking order with their sums; nothing if they are not one simple cycle.
std::optional<MarkedCycle> as_cycle(std::span<const Edge> edges, std::vector<std::size_t> members) {
    if (members.empty()) {
        return std::nullopt;
    }
    std::sort(members.begin(), members.end(),
              [&](std::size_t a, std::size_t b) { return edges[a].from < edges[b].from; });
    MarkedCycle cycle;
    std::size_t at = members.front();
    do {
        cycle.edges.push_back(at);
        cycle.duration_s += edges[at].duration_s;
        cycle.tokens += edges[at].tokens;
        const Vertex next = edges[at].to;
        const auto found =
            std::lower_bound(members.begin(), members.end(), next,
                             [&](std::size_t member, Vertex vertex) { return edges[member].from < vertex; });
        if (found == members.end() || edges[*found].from != next) {
            return std::nullopt;
        }
        at = *found;
    } while (at != members.front() && cycle.edges.size() <= members.size());
    if (cycle.edges.size() != members.size() || cycle.tokens == 0) {
        return std::nullopt;
    }
    return cycle;
}

/// A cycle along `into`, which names for each vertex the edge by which its longest path arrives (`absent`: none).
std::optional<std::vector<std::size_t>> cycle_of_arrivals(std::span<const Edge> edges,
                                                          const std::vector<std::uint32_t>& into) {
    std::vector<std::uint32_t> seen(into.size(), absent);
    for (std::uint32_t start = 0; start < into.size(); ++start) {
        std::uint32_t vertex = start;
        while (seen[vertex] == absent && into[vertex] != absent) {
            seen[vertex] = start;
            vertex = edges[into[vertex]].from;
        }
        if (seen[vertex] != start || into[vertex] == absent) {
            continue;  // ends where an earlier walk, or no path, has been
        }
        std::vector<std::size_t> members;
        std::uint32_t around = vertex;
        do {
            members.push_back(into[around]);
            around = edges[into[around]].from;
        } while (around != vertex);
        return members;
    }
    return std::nullopt;
}

/// A cycle whose ratio exceeds `ratio_s` by more than `margin`, relatively; none if there is none. Bellman and Ford's
/// longest paths with weights duration - ratio_s (1 + margin) tokens settle exactly if no cycle is positive. Long
/// double leaves rounding 1e-9 / 1e-19 = 1e10 times below the margin.
std::optional<MarkedCycle> cycle_above(const Component& component, double ratio_s, long double margin) {
    const std::span<const Edge> edges = component.edges;
    const long double price = static_cast<long double>(ratio_s) * (1.0L + margin);
    std::vector<long double> weight(edges.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
        weight[i] = static_cast<long double>(edges[i].duration_s) - price * static_cast<long double>(edges[i].tokens);
    }
    std::vector<long double> reached(component.vertices, 0.0L);
    std::vector<std::uint32_t> into(component.vertices, absent);
    for (std::size_t pass = 0; pass <= component.vertices; ++pass) {
        bool moved = false;
        for (std::size_t i = 0; i < edges.size(); ++i) {
            const long double arrival = reached[edges[i].from] + weight[i];
            if (arrival > reached[edges[i].to]) {
                reached[edges[i].to] = arrival;
                into[edges[i].to] = static_cast<std::uint32_t>(i);
                moved = true;
            }
        }
        if (!moved) {
            return std::nullopt;
        }
        if (auto members = cycle_of_arrivals(edges, into)) {
            std::optional<MarkedCycle> cycle = as_cycle(edges, std::move(*members));
            if (cycle && static_cast<long double>(cycle->ratio_s()) > static_cast<long double>(ratio_s)) {
                return cycle;
            }
            break;
        }
    }
    throw std::runtime_error(
        "the largest cycle ratio of a marked graph could not be certified: its durations differ by too many orders of "
        "magnitude");
}

/// Any cycle: along the first edge out of each vertex.
MarkedCycle some_cycle(const Component& component) {
    std::vector<std::uint32_t> into(component.vertices, absent);
    for (std::size_t i = 0; i < component.edges.size(); ++i) {
        into[component.edges[i].to] = static_cast<std::uint32_t>(i);
    }
    return as_cycle(component.edges, cycle_of_arrivals(component.edges, into).value()).value();
}

/// Improves a cycle until no other has a larger ratio (Newton's method on the ratio; each step rises strictly, so it
/// ends).
MarkedCycle best_from(const Component& component, MarkedCycle cycle) {
    while (auto better = cycle_above(component, cycle.ratio_s(), certified_to)) {
        cycle = std::move(*better);
    }
    return cycle;
}

void require_live(const MarkedGraph& graph) {
    const auto stuck = deadlocks(graph);
    if (!stuck.empty()) {
        throw std::domain_error("A cycle without a token has no ratio: " + describe_deadlock(graph, stuck.front()) +
                                ".");
    }
}

std::optional<MarkedCycle> best_over_components(const MarkedGraph& graph,
                                                const std::function<MarkedCycle(const Component&)>& best_of) {
    require_live(graph);
    std::optional<MarkedCycle> best;
    for (const Component& component : cyclic_components(graph)) {
        MarkedCycle cycle = best_of(component);
        if (!best || cycle.ratio_s() > best->ratio_s()) {
            for (std::size_t& edge : cycle.edges) {
                edge = component.number[edge];
            }
            best = std::move(cycle);
        }
    }
    return best;
}

}  // namespace

Vertex MarkedGraph::add_vertex(std::string name) {
    vertices.push_back(std::move(name));
    return static_cast<Vertex>(vertices.size() - 1);
}

MarkedGraph::Activity MarkedGraph::add_activity(std::string name) {
    activities.push_back(std::move(name));
    return static_cast<Activity>(activities.size() - 1);
}

void MarkedGraph::add_edge(Vertex from, Vertex to, double duration_s, std::int64_t tokens, Activity activity) {
    assert(from < vertices.size() && to < vertices.size() && activity < activities.size());
    require_not_negative(duration_s, "duration of an edge");
    require_not_negative(static_cast<double>(tokens), "number of tokens on an edge");
    edges.push_back({from, to, duration_s, tokens, activity});
}

std::vector<std::vector<Vertex>> deadlocks(const MarkedGraph& graph) {
    MarkedGraph token_free;
    token_free.vertices.resize(graph.vertices.size());
    for (const Edge& edge : graph.edges) {
        if (edge.tokens == 0) {
            token_free.edges.push_back(edge);
        }
    }
    std::vector<std::vector<Vertex>> cycles;
    for (const Component& component : cyclic_components(token_free)) {
        std::vector<std::uint32_t> into(component.vertices, absent);
        for (std::size_t i = 0; i < component.edges.size(); ++i) {
            into[component.edges[i].to] = static_cast<std::uint32_t>(i);
        }
        const std::vector<std::size_t> backwards = cycle_of_arrivals(component.edges, into).value();
        std::vector<Vertex> cycle;
        for (auto edge = backwards.rbegin(); edge != backwards.rend(); ++edge) {
            cycle.push_back(token_free.edges[component.number[*edge]].from);
        }
        cycles.push_back(std::move(cycle));
    }
    return cycles;
}

std::string describe_deadlock(const MarkedGraph& graph, const std::vector<Vertex>& cycle) {
    std::string text;
    for (const Vertex vertex : cycle) {
        text += graph.vertices[vertex] + " -> ";
    }
    return text + graph.vertices[cycle.front()];
}

std::optional<MarkedCycle> maximum_cycle_ratio(const MarkedGraph& graph) {
    return best_over_components(graph, [](const Component& component) {
        auto proposed = as_cycle(component.edges, howard_cycle(component.vertices, component.edges));
        return best_from(component, proposed ? std::move(*proposed) : some_cycle(component));
    });
}

std::optional<MarkedCycle> maximum_cycle_ratio_by_improvement(const MarkedGraph& graph) {
    return best_over_components(graph,
                                [](const Component& component) { return best_from(component, some_cycle(component)); });
}

std::optional<MarkedCycle> limiting_cycle(const MarkedGraph& graph, Vertex vertex) {
    std::vector<std::vector<std::uint32_t>> arrivals(graph.vertices.size());
    for (std::uint32_t i = 0; i < graph.edges.size(); ++i) {
        arrivals[graph.edges[i].to].push_back(i);
    }
    std::vector<bool> leads_there(graph.vertices.size());
    std::vector<Vertex> open{vertex};
    leads_there[vertex] = true;
    while (!open.empty()) {
        const Vertex at = open.back();
        open.pop_back();
        for (const std::uint32_t i : arrivals[at]) {
            if (!leads_there[graph.edges[i].from]) {
                leads_there[graph.edges[i].from] = true;
                open.push_back(graph.edges[i].from);
            }
        }
    }
    MarkedGraph upstream;
    upstream.vertices = graph.vertices;
    std::vector<std::size_t> number;
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
        if (leads_there[graph.edges[i].to]) {
            upstream.edges.push_back(graph.edges[i]);
            number.push_back(i);
        }
    }
    std::optional<MarkedCycle> cycle = maximum_cycle_ratio(upstream);
    if (cycle) {
        for (std::size_t& edge : cycle->edges) {
            edge = number[edge];
        }
    }
    return cycle;
}

}  // namespace millrace
