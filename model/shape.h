// The shape of a model, where its parameters lie, and what they are called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/generate.h"
#include "sim/scenario/learner_settings.h"

namespace millrace {

class Task;

/// A decoder-only transformer: learned positions, RMSNorm before attention and MLP, ReLU, no biases, untied head.
struct ModelShape {
    std::int32_t layers = 0;
    std::int32_t width = 0;  ///< D, of the residual stream
    std::int32_t heads = 0;  ///< divides the width
    std::int32_t mlp_width = 0;
    std::int32_t vocabulary = 0;
    std::int32_t context = 0;  ///< the most tokens of prompt and answer together

    bool operator==(const ModelShape&) const = default;
};

/// "2 layers, width 32, 2 heads, MLP 128, vocabulary 20, context 18".
std::string to_text(const ModelShape& shape);

/// The shape that `settings` asks for to do `task`. Throws std::invalid_argument, naming the setting, when a number is
/// out of range, the heads do not divide the width, or the context is shorter than the task's prompt and answer.
ModelShape shape_of(const ModelSettings& settings, const Task& task);

/// Throws std::invalid_argument when no model can have this shape.
void require_valid(const ModelShape& shape);

/// A replica's parameters are one flat array in which every matrix and vector starts at a multiple of 16 numbers, so
/// that aligned memory stays aligned. The gaps hold zeros: they have no gradient and change nothing.
ParameterPlaces places_of(const ModelShape& shape);

/// One array of parameters.
struct NamedParameter {
    std::string name;       ///< "token_table", "layer0.qkv", ...
    std::size_t place = 0;  ///< distance from the first number of the replica
    int rows = 1;           ///< out; 1 for gains
    int columns = 0;        ///< in
    std::size_t size() const { return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns); }
};

/// All arrays in the order of their places.
std::vector<NamedParameter> named_parameters(const ModelShape& shape);

/// Number of parameters without the gaps.
std::size_t parameter_count(const ModelShape& shape);

/// Weights [places_of(shape).size] before any training. Gains are 1; tables have standard deviation 0.8; matrices
/// 1/sqrt(in), those that write to the residual stream 1/sqrt(2 layers) of that (Radford et al. 2019), the head a fifth
/// of it. With these scales the default warm start leaves as much to learn as the study whose settings are the defaults
/// (pass@1 about 0.2 on sort8); with smaller tables the same number of updates learns the task outright.
/// Entries are uniform rather than normal because that takes only exact operations: the same bits on every machine.
std::vector<double> initial_weights(const ModelShape& shape, std::uint64_t seed);

}  // namespace millrace
