#include "model/shape.h"

#include <cmath>
#include <stdexcept>

#include "kernels/random.h"
#include "model/tasks/task.h"

namespace millrace {

namespace {

constexpr std::size_t alignment = 16;  // numbers

struct Layout {
    ParameterPlaces places;
    std::vector<NamedParameter> names;
};

Layout layout_of(const ModelShape& shape) {
    require_valid(shape);
    Layout layout;
    std::size_t end = 0;
    const auto add = [&](std::size_t& place, std::string name, int rows, int columns) {
        place = end;
        layout.names.push_back({std::move(name), place, rows, columns});
        end += (layout.names.back().size() + alignment - 1) / alignment * alignment;
    };
    add(layout.places.token_table, "token_table", shape.vocabulary, shape.width);
    add(layout.places.position_table, "position_table", shape.context, shape.width);
    for (int l = 0; l < shape.layers; ++l) {
        auto& layer = layout.places.layer[l];
        const std::string prefix = "layer" + std::to_string(l) + ".";
        add(layer.attention_gain, prefix + "attention_gain", 1, shape.width);
        add(layer.qkv, prefix + "qkv", 3 * shape.width, shape.width);
        add(layer.attention_out, prefix + "attention_out", shape.width, shape.width);
        add(layer.mlp_gain, prefix + "mlp_gain", 1, shape.width);
        add(layer.mlp_up, prefix + "mlp_up", shape.mlp_width, shape.width);
        add(layer.mlp_down, prefix + "mlp_down", shape.width, shape.mlp_width);
    }
    add(layout.places.final_gain, "final_gain", 1, shape.width);
    add(layout.places.head, "head", shape.vocabulary, shape.width);
    layout.places.size = end;
    return layout;
}

std::int32_t within(std::int64_t value, std::int64_t most, const char* name) {
    if (value < 1 || value > most) {
        throw std::invalid_argument(std::string("The model's ") + name + " must be 1 to " + std::to_string(most) +
                                    ", not " + std::to_string(value) + ".");
    }
    return static_cast<std::int32_t>(value);
}

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Standard deviation of the entries of a matrix or table.
double initial_deviation(const ModelShape& shape, const NamedParameter& parameter) {
    if (ends_with(parameter.name, "_table")) {
        return 0.8;
    }
    const double fan_in = 1.0 / std::sqrt(static_cast<double>(parameter.columns));
    if (parameter.name == "head") {
        return 0.2 * fan_in;
    }
    const bool writes_to_residual_stream =
        ends_with(parameter.name, "attention_out") || ends_with(parameter.name, "mlp_down");
    return writes_to_residual_stream ? fan_in / std::sqrt(2.0 * shape.layers) : fan_in;
}

}  // namespace

std::string to_text(const ModelShape& shape) {
    return std::to_string(shape.layers) + " layers, width " + std::to_string(shape.width) + ", " +
           std::to_string(shape.heads) + " heads, MLP " + std::to_string(shape.mlp_width) + ", vocabulary " +
           std::to_string(shape.vocabulary) + ", context " + std::to_string(shape.context);
}

void require_valid(const ModelShape& shape) {
    within(shape.layers, most_layers, "number of layers");
    within(shape.width, 4096, "width");
    within(shape.heads, 256, "number of heads");
    within(shape.mlp_width, 16384, "MLP width");
    within(shape.vocabulary, 4096, "vocabulary");
    within(shape.context, 4096, "context");
    if (shape.width % shape.heads != 0) {
        throw std::invalid_argument("The model's width " + std::to_string(shape.width) +
                                    " cannot be divided among its " + std::to_string(shape.heads) + " heads.");
    }
}

ModelShape shape_of(const ModelSettings& settings, const Task& task) {
    const std::int64_t needed = task.prompt_tokens() + task.answer_tokens();
    const std::int64_t context = settings.context.value_or(needed);
    if (context < needed) {
        throw std::invalid_argument("The model's context of " + std::to_string(context) +
                                    " tokens is too short: the task needs " + std::to_string(task.prompt_tokens()) +
                                    " for the prompt and " + std::to_string(task.answer_tokens()) + " for the answer.");
    }
    const ModelShape shape{.layers = within(settings.layers, most_layers, "number of layers"),
                           .width = within(settings.width, 4096, "width"),
                           .heads = within(settings.heads, 256, "number of heads"),
                           .mlp_width = within(settings.mlp_width, 16384, "MLP width"),
                           .vocabulary = within(task.vocabulary(), 4096, "vocabulary"),
                           .context = within(context, 4096, "context")};
    require_valid(shape);
    return shape;
}

ParameterPlaces places_of(const ModelShape& shape) {
    return layout_of(shape).places;
}

std::vector<NamedParameter> named_parameters(const ModelShape& shape) {
    return layout_of(shape).names;
}

std::size_t parameter_count(const ModelShape& shape) {
    std::size_t count = 0;
    for (const NamedParameter& parameter : named_parameters(shape)) {
        count += parameter.size();
    }
    return count;
}

std::vector<double> initial_weights(const ModelShape& shape, std::uint64_t seed) {
    const Layout layout = layout_of(shape);
    std::vector<double> weights(layout.places.size, 0.0);
    std::uint64_t index = 0;  // of the parameter, gaps not counted: the weights do not depend on the alignment
    for (const NamedParameter& parameter : layout.names) {
        const bool is_gain = ends_with(parameter.name, "_gain");
        const double half_range = is_gain ? 0.0 : std::sqrt(3.0) * initial_deviation(shape, parameter);
        for (std::size_t i = 0; i < parameter.size(); ++i, ++index) {
            const auto bits = learner_bits(seed, LearnerPurpose::initial_weights, index);
            const double centred = 2.0 * static_cast<double>(uniform_from(bits.word[0])) - 1.0;
            weights[parameter.place + i] = is_gain ? 1.0 : half_range * centred;
        }
    }
    return weights;
}

}  // namespace millrace
