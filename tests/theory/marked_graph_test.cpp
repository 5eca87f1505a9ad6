// Cycle ratios and deadlocks of marked graphs, against enumeration and an independent method, at every scale.
#include "sim/theory/marked_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <sstream>

#include "sim/engine/random.h"

using namespace millrace;

namespace {

/// Whole numbers and reals for random graphs.
class Dice {
   public:
    explicit Dice(std::uint64_t seed) : draw_(RandomStream(seed, 0, Purpose::rollout_tokens), 0) {}
    std::int64_t whole(std::int64_t low, std::int64_t high) {
        return std::min(high, low + static_cast<std::int64_t>(real() * static_cast<double>(high - low + 1)));
    }
    double real() { return draw_.uniform(); }

   private:
    Draw draw_;
};

MarkedGraph empty_graph(std::int64_t vertices) {
    MarkedGraph graph;
    for (std::int64_t v = 0; v < vertices; ++v) {
        graph.add_vertex("v" + std::to_string(v));
    }
    graph.add_activity("work");
    return graph;
}

/// Live: edges without tokens lead to higher numbers only.
MarkedGraph random_live_graph(Dice& dice, double scale) {
    const std::int64_t n = dice.whole(1, 7);
    MarkedGraph graph = empty_graph(n);
    const std::int64_t edges = dice.whole(1, 2 * n + 2);
    for (std::int64_t e = 0; e < edges; ++e) {
        const std::int64_t from = dice.whole(0, n - 1);
        const std::int64_t to = dice.whole(0, n - 1);
        const std::int64_t tokens = dice.whole(to > from ? 0 : 1, 4);
        // Coarse durations, so that ties between cycles are common.
        const double duration = dice.real() < 0.3 ? static_cast<double>(dice.whole(0, 5)) : 100.0 * dice.real();
        graph.add_edge(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to), scale * duration, tokens, 0);
    }
    return graph;
}

/// By walking every simple cycle; negative: there is none.
double largest_ratio_by_enumeration(const MarkedGraph& graph) {
    double best = -1.0;
    std::vector<bool> visited(graph.vertices.size());
    std::function<void(std::uint32_t, std::uint32_t, double, std::int64_t)> walk =
        [&](std::uint32_t root, std::uint32_t at, double duration, std::int64_t tokens) {
            for (const MarkedGraph::Edge& edge : graph.edges) {
                if (edge.from != at || edge.to < root) {
                    continue;
                }
                const double sum = duration + edge.duration_s;
                const std::int64_t count = tokens + edge.tokens;
                if (edge.to == root) {
                    best = std::max(best, sum / static_cast<double>(count));
                } else if (!visited[edge.to]) {
                    visited[edge.to] = true;
                    walk(root, edge.to, sum, count);
                    visited[edge.to] = false;
                }
            }
        };
    for (std::uint32_t root = 0; root < graph.vertices.size(); ++root) {
        walk(root, root, 0.0, 0);
    }
    return best;
}

void check_is_cycle(const MarkedGraph& graph, const MarkedCycle& cycle) {
    double duration = 0.0;
    std::int64_t tokens = 0;
    std::set<std::uint32_t> visited;
    for (std::size_t i = 0; i < cycle.edges.size(); ++i) {
        const MarkedGraph::Edge& edge = graph.edges[cycle.edges[i]];
        const MarkedGraph::Edge& next = graph.edges[cycle.edges[(i + 1) % cycle.edges.size()]];
        CHECK(edge.to == next.from);
        CHECK(visited.insert(edge.from).second);
        duration += edge.duration_s;
        tokens += edge.tokens;
    }
    CHECK(cycle.tokens == tokens);
    CHECK(cycle.duration_s == doctest::Approx(duration).epsilon(1e-12));
}

/// Boost's answer with its own traits, which take any improvement below 0.005 for rounding.
double ratio_by_default_traits(const MarkedGraph& graph) {
    using Weights = boost::property<boost::edge_weight_t, double, boost::property<boost::edge_weight2_t, double>>;
    using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Weights>;
    Graph boosted(graph.vertices.size());
    for (const MarkedGraph::Edge& edge : graph.edges) {
        boost::add_edge(edge.from, edge.to, Weights{edge.duration_s, {static_cast<double>(edge.tokens)}}, boosted);
    }
    return boost::maximum_cycle_ratio(boosted, boost::get(boost::vertex_index, boosted),
                                      boost::get(boost::edge_weight, boosted),
                                      boost::get(boost::edge_weight2, boosted));
}

}  // namespace

TEST_CASE("the largest cycle ratio of 9,000 random graphs is that of all their cycles, at every scale of durations") {
    for (const double scale : {1e-4, 1.0, 1e4}) {
        CAPTURE(scale);
        Dice dice(17);
        int with_cycle = 0;
        int wrong = 0;
        for (int g = 0; g < 3000; ++g) {
            const MarkedGraph graph = random_live_graph(dice, scale);
            const double expected = largest_ratio_by_enumeration(graph);
            const auto howard = maximum_cycle_ratio(graph);
            const auto own = maximum_cycle_ratio_by_improvement(graph);
            REQUIRE(howard.has_value() == (expected >= 0.0));
            REQUIRE(own.has_value() == (expected >= 0.0));
            if (howard) {
                ++with_cycle;
                check_is_cycle(graph, *howard);
                check_is_cycle(graph, *own);
                const double tolerance = 2e-9 * expected;
                wrong += std::abs(howard->ratio_s() - expected) > tolerance ? 1 : 0;
                wrong += std::abs(own->ratio_s() - expected) > tolerance ? 1 : 0;
            }
        }
        CHECK(wrong == 0);
        CHECK(with_cycle > 1500);
    }
}

TEST_CASE("Boost's default traits are wrong where durations are small, which is why they are not used") {
    const auto wrong = [](double scale) {
        Dice dice(23);
        int count = 0;
        for (int g = 0; g < 3000; ++g) {
            // A ring makes the graph strongly connected, as Boost's algorithm wants it.
            MarkedGraph graph = empty_graph(dice.whole(3, 7));
            const auto n = static_cast<std::int64_t>(graph.vertices.size());
            for (std::int64_t v = 0; v < n; ++v) {
                graph.add_edge(static_cast<std::uint32_t>(v), static_cast<std::uint32_t>((v + 1) % n),
                               scale * 100.0 * dice.real(), v + 1 == n ? 1 : 0, 0);
            }
            for (std::int64_t e = 0; e < 2 * n; ++e) {
                graph.add_edge(static_cast<std::uint32_t>(dice.whole(0, n - 1)),
                               static_cast<std::uint32_t>(dice.whole(0, n - 1)), scale * 100.0 * dice.real(),
                               dice.whole(1, 3), 0);
            }
            const double expected = largest_ratio_by_enumeration(graph);
            CHECK(maximum_cycle_ratio(graph)->ratio_s() == doctest::Approx(expected).epsilon(2e-9));
            count += std::abs(ratio_by_default_traits(graph) - expected) > 1e-6 * expected ? 1 : 0;
        }
        return count;
    };
    const int small = wrong(1e-4);
    const int usual = wrong(1.0);
    MESSAGE("default traits wrong of 3,000: " << usual << " with durations up to 100, " << small << " up to 0.01");
    CHECK(small > 100);
}

TEST_CASE("durations that span many orders of magnitude are certified") {
    Dice dice(29);
    for (int g = 0; g < 1000; ++g) {
        MarkedGraph graph = random_live_graph(dice, 1.0);
        for (MarkedGraph::Edge& edge : graph.edges) {
            edge.duration_s *= std::pow(10.0, static_cast<double>(dice.whole(-9, 6)));
        }
        const double expected = largest_ratio_by_enumeration(graph);
        const auto found = maximum_cycle_ratio(graph);
        REQUIRE(found.has_value() == (expected >= 0.0));
        if (found) {
            CHECK(std::abs(found->ratio_s() - expected) <= 2e-9 * expected);
        }
    }
}

TEST_CASE("a cycle without tokens is found wherever one is hidden, and named") {
    Dice dice(31);
    for (int g = 0; g < 1000; ++g) {
        MarkedGraph graph = random_live_graph(dice, 1.0);
        CHECK(deadlocks(graph).empty());
        // A ring through distinct vertices, in random order.
        std::vector<std::uint32_t> ring(graph.vertices.size());
        for (std::uint32_t v = 0; v < ring.size(); ++v) {
            ring[v] = v;
        }
        for (std::size_t v = ring.size(); v > 1; --v) {
            std::swap(ring[v - 1], ring[static_cast<std::size_t>(dice.whole(0, static_cast<std::int64_t>(v) - 1))]);
        }
        ring.resize(static_cast<std::size_t>(dice.whole(1, static_cast<std::int64_t>(ring.size()))));
        for (std::size_t i = 0; i < ring.size(); ++i) {
            graph.add_edge(ring[i], ring[(i + 1) % ring.size()], dice.real(), 0, 0);
        }
        const auto found = deadlocks(graph);
        REQUIRE(found.size() == 1);
        const std::set<std::uint32_t> planted(ring.begin(), ring.end());
        bool meets_ring = false;
        for (std::size_t i = 0; i < found.front().size(); ++i) {
            const std::uint32_t from = found.front()[i];
            const std::uint32_t to = found.front()[(i + 1) % found.front().size()];
            CHECK(std::any_of(graph.edges.begin(), graph.edges.end(), [&](const MarkedGraph::Edge& edge) {
                return edge.from == from && edge.to == to && edge.tokens == 0;
            }));
            meets_ring = meets_ring || planted.contains(from);
        }
        CHECK(meets_ring);
        CHECK_THROWS_WITH_AS(maximum_cycle_ratio(graph),
                             doctest::Contains(graph.vertices[found.front().front()].c_str()), std::domain_error);
    }
}

TEST_CASE("a firing is limited by the cycles before it, not by those after it") {
    MarkedGraph graph = empty_graph(3);
    graph.add_edge(0, 0, 5.0, 1, 0);
    graph.add_edge(0, 1, 1.0, 0, 0);
    graph.add_edge(1, 1, 3.0, 1, 0);
    graph.add_edge(1, 2, 1.0, 0, 0);
    graph.add_edge(2, 2, 14.0, 2, 0);
    CHECK(limiting_cycle(graph, 0)->ratio_s() == 5.0);
    CHECK(limiting_cycle(graph, 1)->ratio_s() == 5.0);
    CHECK(limiting_cycle(graph, 2)->ratio_s() == 7.0);
    CHECK(limiting_cycle(graph, 2)->edges == std::vector<std::size_t>{4});
    MarkedGraph line = empty_graph(2);
    line.add_edge(0, 1, 1.0, 0, 0);
    CHECK_FALSE(limiting_cycle(line, 1).has_value());
    CHECK_THROWS_AS(line.add_edge(0, 1, -1.0, 0, 0), std::domain_error);
    CHECK_THROWS_AS(line.add_edge(0, 1, std::numeric_limits<double>::quiet_NaN(), 0, 0), std::domain_error);
    CHECK_THROWS_AS(line.add_edge(0, 1, 1.0, -1, 0), std::domain_error);
}

TEST_CASE("the picture has every vertex and edge, and the critical cycle in red") {
    MarkedGraph graph;
    const auto a = graph.add_vertex("say \"a\"");
    const auto b = graph.add_vertex("b");
    const auto work = graph.add_activity("work");
    graph.add_edge(a, b, 2.0, 0, work);
    graph.add_edge(b, a, 0.0, 1, work);
    graph.add_edge(b, b, 1.0, 1, work);
    std::ostringstream out;
    write_dot(out, graph, maximum_cycle_ratio(graph));
    CHECK(out.str() ==
          "digraph pipeline {\n"
          "    rankdir=LR;\n"
          "    node [shape=box, fontname=\"sans-serif\"];\n"
          "    edge [fontname=\"sans-serif\"];\n"
          "    v0 [label=\"say \\\"a\\\"\", color=red, penwidth=2];\n"
          "    v1 [label=\"b\", color=red, penwidth=2];\n"
          "    v0 -> v1 [label=\"work 2 s\", color=red, fontcolor=red, penwidth=2];\n"
          "    v1 -> v0 [label=\"work, 1 token\", color=red, fontcolor=red, penwidth=2];\n"
          "    v1 -> v1 [label=\"work 1 s, 1 token\"];\n"
          "}\n");
}
