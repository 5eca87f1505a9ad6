#include "model/shape.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "model/tasks/task.h"
#include "model/weights.h"

using namespace millrace;

namespace {

const Task sort8({TaskKind::sort, 8});

}  // namespace

TEST_CASE("the default model has the size of the study it follows") {
    const ModelShape shape = shape_of({}, sort8);
    CHECK(shape == ModelShape{2, 32, 2, 128, 20, 18});
    // Tables 38 x 32, layers 2 x (2 x 32 + 4 x 32 x 32 + 2 x 32 x 128), final gain 32, head 20 x 32.
    CHECK(parameter_count(shape) == 38 * 32 + 2 * (64 + 4096 + 8192) + 32 + 640);
}

TEST_CASE("every array starts at a multiple of 16, behind the one before") {
    const ModelShape shape{3, 10, 5, 7, 11, 13};
    std::size_t end = 0;
    for (const NamedParameter& parameter : named_parameters(shape)) {
        CHECK(parameter.place % 16 == 0);
        CHECK(parameter.place >= end);
        CHECK(parameter.place < end + 16);
        end = parameter.place + parameter.size();
    }
    CHECK(places_of(shape).size % 16 == 0);
    CHECK(places_of(shape).size < end + 16);
}

TEST_CASE("initial weights: scales, gains and gaps") {
    const ModelShape shape{2, 30, 2, 50, 20, 18};
    const std::vector<double> weights = initial_weights(shape, 1);
    CHECK(weights.size() == places_of(shape).size);
    std::vector<bool> named(weights.size(), false);
    for (const NamedParameter& parameter : named_parameters(shape)) {
        double squares = 0.0;
        for (std::size_t i = parameter.place; i < parameter.place + parameter.size(); ++i) {
            squares += weights[i] * weights[i];
            named[i] = true;
        }
        const double deviation = std::sqrt(squares / static_cast<double>(parameter.size()));
        if (parameter.rows == 1) {
            CHECK(deviation == 1.0);
        } else if (parameter.name == "layer1.qkv") {
            CHECK(deviation == doctest::Approx(1.0 / std::sqrt(30.0)).epsilon(0.05));
        } else if (parameter.name == "layer0.mlp_down") {
            CHECK(deviation == doctest::Approx(0.5 / std::sqrt(50.0)).epsilon(0.05));
        }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!named[i]) {
            CHECK(weights[i] == 0.0);
        }
    }
    CHECK(initial_weights(shape, 1) == weights);
    CHECK(initial_weights(shape, 2) != weights);
}

TEST_CASE("impossible shapes are refused with the reason") {
    CHECK_THROWS_WITH_AS(shape_of({.width = 33, .context = {}}, sort8),
                         "The model's width 33 cannot be divided among its 2 heads.", std::invalid_argument);
    CHECK_THROWS_WITH_AS(shape_of({.context = 17}, sort8),
                         "The model's context of 17 tokens is too short: the task needs 9 for the prompt and 9 for the "
                         "answer.",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(shape_of({.layers = 0, .context = {}}, sort8),
                         "The model's number of layers must be 1 to 16, not 0.", std::invalid_argument);
    CHECK_THROWS_AS(shape_of({.layers = 17, .context = {}}, sort8), std::invalid_argument);
    CHECK_THROWS_AS(shape_of({.mlp_width = -1, .context = {}}, sort8), std::invalid_argument);
}
