// The fields of a checkpoint in the order of its file, for those who put more beside them in theirs.
#pragma once

#include <string>

#include "model/checkpoint.h"

namespace millrace {

/// `Fields` is FieldWriter or FieldReader (sealed_file.h).
template <typename Fields, typename AnyCheckpoint>
void visit_fields(Fields& field, AnyCheckpoint& checkpoint) {
    field(checkpoint.shape.layers);
    field(checkpoint.shape.width);
    field(checkpoint.shape.heads);
    field(checkpoint.shape.mlp_width);
    field(checkpoint.shape.vocabulary);
    field(checkpoint.shape.context);
    field(checkpoint.task.kind);
    field(checkpoint.task.size);
    field(checkpoint.theta_0_hash);
    field(checkpoint.settings_hash);
    field(checkpoint.counters.updates);
    field(checkpoint.counters.rollouts);
    field(checkpoint.replicas);
    field(checkpoint.generated_tokens);
    field(checkpoint.trained_tokens);
    field(checkpoint.weights);
    field(checkpoint.first_moment);
    field(checkpoint.second_moment);
}

/// Throws std::runtime_error, naming the file, when arrays are not those of so many replicas of such a model.
template <typename Real>
void require_consistent(const Checkpoint<Real>& checkpoint, const std::string& path);

}  // namespace millrace
