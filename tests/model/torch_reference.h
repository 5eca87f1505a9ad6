// Reads fixtures/torch_reference.json, which torch_fixture.py writes, and repeats the recipes of torch_model.py.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/shape.h"

namespace millrace {

/// Number `index` of `stream` in [-1, 1): recipe() of torch_model.py.
inline double recipe_number(std::uint32_t stream, std::uint32_t index) {
    std::uint32_t h = index * 0x9E3779B1u + stream * 0x7F4A7C15u;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    h ^= h >> 16;
    return (static_cast<double>(h >> 12) - 0x1p19) / 0x1p19;
}

/// The recipe's parameters at their places, [P].
template <typename Real>
std::vector<Real> recipe_weights(const ModelShape& shape, double scale, std::uint32_t stream = 1) {
    std::vector<Real> weights(places_of(shape).size);
    std::uint32_t index = 0;
    for (const NamedParameter& parameter : named_parameters(shape)) {
        for (std::size_t i = 0; i < parameter.size(); ++i) {
            const double number = recipe_number(stream, index++);
            const double weight = parameter.name.ends_with("gain") ? 1.0 + 0.25 * number : scale * number;
            weights[parameter.place + i] = static_cast<Real>(weight);
        }
    }
    return weights;
}

/// Every number of nested arrays, in order.
inline std::vector<double> flat(const nlohmann::json& node) {
    if (!node.is_array()) {
        return {node.get<double>()};
    }
    std::vector<double> numbers;
    for (const nlohmann::json& item : node) {
        const std::vector<double> part = flat(item);
        numbers.insert(numbers.end(), part.begin(), part.end());
    }
    return numbers;
}

/// 16 hexadecimal digits for the bits of each double.
inline std::vector<double> from_hexadecimal(const std::string& text) {
    std::vector<double> numbers;
    for (std::size_t place = 0; place + 16 <= text.size(); place += 16) {
        numbers.push_back(std::bit_cast<double>(std::uint64_t{std::stoull(text.substr(place, 16), nullptr, 16)}));
    }
    return numbers;
}

struct TorchReference {
    nlohmann::json document;
    ModelShape shape;

    explicit TorchReference(const std::string& path) {
        std::ifstream(path) >> document;
        const nlohmann::json& node = document["shape"];
        shape = {node["layers"], node["width"], node["heads"], node["mlp_width"], node["vocabulary"], node["context"]};
    }

    template <typename Real>
    std::vector<Real> weights() const {
        return recipe_weights<Real>(shape, document["weight_scale"], document["weight_stream"]);
    }
};

inline double largest(const std::vector<double>& numbers) {
    double found = 0.0;
    for (const double number : numbers) {
        found = std::max(found, std::abs(number));
    }
    return found;
}

/// The largest difference as a share of the largest reference number. Infinite when something is not a number.
inline double relative_error(const std::vector<double>& ours, const std::vector<double>& reference) {
    double difference = ours.size() == reference.size() ? 0.0 : HUGE_VAL;
    for (std::size_t i = 0; i < ours.size() && i < reference.size(); ++i) {
        const double here = std::abs(ours[i] - reference[i]);
        difference = here <= HUGE_VAL ? std::max(difference, here) : HUGE_VAL;
    }
    const double scale = largest(reference);
    return scale > 0.0 ? difference / scale : difference;
}

/// Sum of squared differences over sum of squares.
inline double normalised_error(const std::vector<double>& ours, const std::vector<double>& reference) {
    double differences = ours.size() == reference.size() ? 0.0 : HUGE_VAL;
    double squares = 0.0;
    for (std::size_t i = 0; i < ours.size() && i < reference.size(); ++i) {
        differences += (ours[i] - reference[i]) * (ours[i] - reference[i]);
        squares += reference[i] * reference[i];
    }
    return squares > 0.0 ? differences / squares : differences;
}

}  // namespace millrace
