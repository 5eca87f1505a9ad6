// A marked graph as a picture: Graphviz text.
#include <cstdio>

#include "sim/theory/marked_graph.h"

namespace millrace {
namespace {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
    return out + "\"";
}

}  // namespace

void write_dot(std::ostream& out, const MarkedGraph& graph, const std::optional<MarkedCycle>& critical) {
    std::vector<bool> on_cycle(graph.edges.size());
    std::vector<bool> vertex_on_cycle(graph.vertices.size());
    if (critical) {
        for (const std::size_t edge : critical->edges) {
            on_cycle[edge] = true;
            vertex_on_cycle[graph.edges[edge].from] = true;
        }
    }
    out << "digraph pipeline {\n    rankdir=LR;\n    node [shape=box, fontname=\"sans-serif\"];\n"
        << "    edge [fontname=\"sans-serif\"];\n";
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
        out << "    v" << v << " [label=" << quoted(graph.vertices[v])
            << (vertex_on_cycle[v] ? ", color=red, penwidth=2" : "") << "];\n";
    }
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
        const MarkedGraph::Edge& edge = graph.edges[i];
        std::string label = graph.activities[edge.activity];
        if (edge.duration_s > 0.0) {
            char seconds[40];
            std::snprintf(seconds, sizeof seconds, " %.6g s", edge.duration_s);
            label += seconds;
        }
        if (edge.tokens > 0) {
            label += ", " + std::to_string(edge.tokens) + (edge.tokens == 1 ? " token" : " tokens");
        }
        out << "    v" << edge.from << " -> v" << edge.to << " [label=" << quoted(label)
            << (on_cycle[i] ? ", color=red, fontcolor=red, penwidth=2" : "") << "];\n";
    }
    out << "}\n";
}

}  // namespace millrace
