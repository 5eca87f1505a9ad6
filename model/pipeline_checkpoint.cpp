#include "model/pipeline_checkpoint.h"

#include <algorithm>

#include "model/checkpoint_fields.h"
#include "model/sealed_file.h"

namespace millrace {
namespace {

constexpr SealedFormat format{{'M', 'L', 'R', 'P', 'I', 'P', 'E', 'L'}, 1, "checkpoint of a run with a learner"};

// ---- the file, in its order; Fields is FieldWriter or FieldReader ---------------------------------------------------

template <typename Fields, typename List, typename Visit>
void visit_each(Fields& field, List& list, const Visit& visit) {
    field.list(list);
    for (auto& element : list) {
        visit(element);
    }
}

template <typename Fields, typename AnyRollout>
void visit_text(Fields& field, AnyRollout& text) {
    field(text.policy_version);
    field(text.tokens);
    field(text.answer_tokens);
    field(text.log_probability);
    field(text.reward);
    field(text.advantage);
}

template <typename Fields, typename AnyPoint>
void visit_point(Fields& field, AnyPoint& point) {
    field(point.update);
    field(point.units);
    field(point.at_s);
    field(point.active_gpu_s);
    field(point.reserved_gpu_s);
    field(point.staleness);
    field(point.replay);
    visit_each(field, point.evaluation, [&](auto& evaluation) {
        field(evaluation.pass_at_1);
        field(evaluation.pass_at_4);
        field(evaluation.pass_at_16);
        field(evaluation.greedy);
        field(evaluation.entropy);
        field(evaluation.answer_tokens);
    });
    visit_each(field, point.statistics, [&](auto& statistics) {
        field(statistics.trained_sequences);
        field(statistics.trained_tokens);
        field(statistics.mean_abs_ratio_minus_1);
        field(statistics.clipped_fraction);
        field(statistics.ess_token);
        field(statistics.ess_sequence);
        field(statistics.entropy);
        field(statistics.log_probability);
        field(statistics.gradient_norm);
    });
}

template <typename Fields, typename AnyCheckpoint>
void visit_fields_of_pipeline(Fields& field, AnyCheckpoint& checkpoint) {
    visit_fields(field, checkpoint.learner);
    field(checkpoint.made_on);
    visit_each(field, checkpoint.versions, [&](auto& version) {
        field(version.number);
        field(version.weights);
    });
    field(checkpoint.kept);
    visit_each(field, checkpoint.rollouts, [&](auto& rollout) {
        field(rollout.id);
        field(rollout.version_started);
        field(rollout.finished);
        visit_each(field, rollout.segments, [&](auto& segment) {
            field(segment.version);
            field(segment.first_token);
        });
        visit_text(field, rollout.text);
    });
    field(checkpoint.pending);
    visit_each(field, checkpoint.open_groups, [&](auto& open) {
        field(open.group);
        field(open.written);
    });
    visit_each(field, checkpoint.curve, [&](auto& point) { visit_point(field, point); });
    field(checkpoint.units_before);
    field(checkpoint.samples);
    field(checkpoint.staleness);
    field(checkpoint.written);
    field(checkpoint.timeline);
    field(checkpoint.verdicts);
    field(checkpoint.verdict_bits);
}

/// What learning goes on from is whole. Nothing else can be wrong in a file whose checksum is right.
template <typename Real>
bool is_consistent(const PipelineCheckpoint<Real>& checkpoint) {
    const std::size_t all = checkpoint.learner.weights.size();
    const auto replicas = static_cast<std::size_t>(checkpoint.learner.replicas);
    return checkpoint.learner.first_moment.size() == all &&
           std::ranges::all_of(
               checkpoint.versions,
               [all](const auto& version) { return version.weights.size() == all || version.weights.empty(); }) &&
           !checkpoint.curve.empty() && checkpoint.curve.back().update == checkpoint.learner.counters.updates &&
           std::ranges::all_of(checkpoint.curve,
                               [replicas](const CurvePoint& point) {
                                   return point.evaluation.size() == replicas && point.statistics.size() == replicas;
                               }) &&
           checkpoint.verdict_bits.size() == (static_cast<std::size_t>(checkpoint.verdicts) + 63) / 64;
}

}  // namespace

template <typename Real>
void write_pipeline_checkpoint(const std::string& path, const PipelineCheckpoint<Real>& checkpoint) {
    FieldWriter fields;
    visit_fields_of_pipeline(fields, checkpoint);
    write_sealed(path, format, sizeof(Real), fields);
}

template <typename Real>
PipelineCheckpoint<Real> read_pipeline_checkpoint(const std::string& path) {
    const std::vector<std::byte> bytes = read_sealed(path, format, sizeof(Real));
    FieldReader fields(bytes, path);
    PipelineCheckpoint<Real> checkpoint;
    visit_fields_of_pipeline(fields, checkpoint);
    fields.end();
    require_consistent(checkpoint.learner, path);
    if (!is_consistent(checkpoint)) {
        fail_checkpoint(path, "contradicts itself");
    }
    return checkpoint;
}

template void write_pipeline_checkpoint(const std::string&, const PipelineCheckpoint<float>&);
template void write_pipeline_checkpoint(const std::string&, const PipelineCheckpoint<double>&);
template PipelineCheckpoint<float> read_pipeline_checkpoint(const std::string&);
template PipelineCheckpoint<double> read_pipeline_checkpoint(const std::string&);

}  // namespace millrace
