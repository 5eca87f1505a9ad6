// Calibrations that tests make up, complete with what a calibration has to say about its sources.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/scenario/calibration.h"
#include "sim/scenario/decode.h"

namespace millrace {

inline nlohmann::ordered_json sources_of(const nlohmann::ordered_json& file) {
    nlohmann::ordered_json sources = nlohmann::ordered_json::array();
    for (const char* part : {"workers", "groups", "trainers", "weight_sync", "noise", "price"}) {
        if (file.contains(part)) {
            sources.push_back({{"path", part}, {"text", "drawn at random"}, {"where", "this test"}});
        }
    }
    return sources;
}

inline Calibration calibration_of(nlohmann::ordered_json file) {
    file["name"] = "test";
    file["sources"] = sources_of(file);
    file["target"] = {{"on_policy_updates", 100}, {"source", "this test"}};
    return decode_calibration(file.dump(), "test.json", {});
}

}  // namespace millrace
