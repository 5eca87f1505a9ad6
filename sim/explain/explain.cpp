#include "sim/explain/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "sim/pipeline/pipeline.h"

namespace millrace {
namespace {

std::string text(double value) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.4g", value);
    return digits;
}

PipelineGraph graph_of(const PipelineConfig& config) {
    try {
        return rollout_graph(config);
    } catch (const std::length_error& too_large) {
        PipelineGraph pipeline = batch_graph(config);
        pipeline.approximations.push_back(too_large.what());
        return pipeline;
    }
}

void require_live(const PipelineGraph& pipeline) {
    const auto stuck = deadlocks(pipeline.graph);
    if (!stuck.empty()) {
        throw PipelineStuck("deadlock, by the graph of the pipeline, in which each waits for the next: " +
                            describe_deadlock(pipeline.graph, {stuck.front().rbegin(), stuck.front().rend()}) + ".");
    }
}

double period_of(const PipelineGraph& pipeline, MarkedGraph::Vertex vertex) {
    const auto cycle = limiting_cycle(pipeline.graph, vertex);
    if (!cycle) {
        throw std::logic_error("nothing limits \"" + pipeline.graph.vertices[vertex] + "\" in the graph of a pipeline");
    }
    return cycle->ratio_s() / static_cast<double>(pipeline.updates);
}

std::vector<CyclePart> parts_of(const MarkedGraph& graph, const MarkedCycle& cycle) {
    std::vector<CyclePart> parts;
    for (const std::size_t index : cycle.edges) {
        const MarkedGraph::Edge& edge = graph.edges[index];
        if (edge.duration_s == 0.0) {
            continue;
        }
        const std::string& activity = graph.activities[edge.activity];
        auto part = std::find_if(parts.begin(), parts.end(),
                                 [&](const CyclePart& candidate) { return candidate.activity == activity; });
        if (part == parts.end()) {
            part = parts.insert(parts.end(), CyclePart{activity});
        }
        ++part->times;
        part->duration_s += edge.duration_s;
    }
    return parts;
}

std::string binding(const PipelineConfig& config, const PeriodExplanation& explained) {
    const MarkedGraph& graph = explained.pipeline.graph;
    std::vector<bool> has(graph.activities.size());
    for (const std::size_t edge : explained.critical.edges) {
        has[graph.edges[edge].activity] = true;
    }
    const std::string takes = text(explained.period_s) + " s";
    const std::string batch = std::to_string(explained.pipeline.rollouts / explained.pipeline.updates) + " rollouts";
    const bool trains = has[activity::update];
    const bool generates = has[activity::generation] || has[activity::full_slots];
    if (trains && !generates) {
        std::string sentence = "The trainers bind: one update after another takes " + takes;
        sentence += has[activity::transfer] ? ", the weight transfer that they wait for included." : ".";
        if (explained.rollouts_per_update) {
            sentence += " Once the replay buffer is filled they never wait for the workers, which meanwhile make " +
                        text(*explained.rollouts_per_update) + " rollouts per update: with " +
                        std::to_string(config.trainers.batch) + " samples in an update each is used " +
                        text(static_cast<double>(config.trainers.batch) / *explained.rollouts_per_update) +
                        " times on average.";
        }
        return sentence;
    }
    if (generates && !trains) {
        return "The workers bind: with every slot busy they need " + takes + " for the " + batch + " of an update.";
    }
    if (!generates) {
        return "The reward stage binds: its servers need " + takes + " for the " + batch + " of an update.";
    }
    if (!has[activity::permission]) {
        // Around a cycle through the store's room the workers' and the trainers' periods average, so neither is longer.
        return "Workers and trainers bind alike, each for " + takes + " per update.";
    }
    return "The loop from weights to rollouts and back binds: admission (steps_ahead " +
           std::to_string(config.admission->steps_ahead) +
           ") lets rollouts start only after an update that needs earlier ones, so that generation" +
           (has[activity::grading] ? ", grading" : "") + (has[activity::transfer] ? ", weight transfer" : "") +
           " and training follow one another; " + takes + " per update.";
}

}  // namespace

PeriodExplanation explain_period(const PipelineConfig& config) {
    PeriodExplanation explained;
    explained.pipeline = graph_of(config);
    const PipelineGraph& pipeline = explained.pipeline;
    require_live(pipeline);
    const PipelineGraph batches = batch_graph(config);
    require_live(batches);
    explained.critical = limiting_cycle(pipeline.graph, pipeline.update).value();
    explained.period_s = explained.critical.ratio_s() / static_cast<double>(pipeline.updates);
    explained.floor_s = period_of(batches, batches.update);
    explained.parts = parts_of(pipeline.graph, explained.critical);
    explained.cycle_updates = explained.critical.tokens * pipeline.updates;
    if (!pipeline.trainers_wait_for_rollouts) {
        const double workers_s = std::max(explained.period_s, period_of(pipeline, pipeline.generation));
        const bool admitted = config.admission.has_value();  // then they make no more than an update permits
        const double own_s = admitted ? workers_s : period_of(pipeline, pipeline.generation);
        explained.rollouts_per_update =
            static_cast<double>(pipeline.rollouts) / static_cast<double>(pipeline.updates) * explained.period_s / own_s;
    }
    explained.binds = binding(config, explained);
    return explained;
}

std::optional<Estimate> paired_difference(const RunResult& base, const RunResult& changed, const std::string& metric) {
    const auto before = base.samples.find(metric);
    const auto after = changed.samples.find(metric);
    if (before == base.samples.end() || after == changed.samples.end() ||
        before->second.size() != static_cast<std::size_t>(base.replications_done) ||
        after->second.size() != before->second.size() || changed.replications_done != base.replications_done) {
        return std::nullopt;
    }
    std::vector<double> differences;
    for (std::size_t r = 0; r < before->second.size(); ++r) {
        differences.push_back(after->second[r] - before->second[r]);
    }
    if (std::ranges::any_of(differences, [](double difference) { return std::isnan(difference); })) {
        return std::nullopt;  // a replication has no value
    }
    return estimate(differences);
}

}  // namespace millrace
