// What a run on a GPU showed, gathered for the evidence file.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace millrace::test {

struct CheckRecord {
    std::string name;
    double worst = 0.0;  ///< the worst number that any case of the check gave
    double limit = 0.0;
    std::string where;  ///< the case that gave it
    bool passed() const { return worst <= limit; }
};

struct SpeedRecord {
    std::string what;  ///< "training step", "update", "generation"
    int replicas = 1;
    int sequences = 0;               ///< per replica
    double tokens_per_second = 0.0;  ///< read tokens when training, answer tokens when generating
    double seconds = 0.0;            ///< of one, the median
    double floor_seconds = 0.0;      ///< counted bytes or operations at the device's rates; 0 where nothing is counted
};

/// The one record of this program.
struct Evidence {
    std::string device;
    std::vector<CheckRecord> checks;
    std::vector<SpeedRecord> speeds;

    /// Notes `value` of one case; the worst of a check stays.
    void note(const std::string& check, double value, double limit, const std::string& where) {
        const auto known = std::find_if(checks.begin(), checks.end(), [&](const auto& c) { return c.name == check; });
        if (known == checks.end()) {
            checks.push_back({check, value, limit, where});
        } else if (!(value <= known->worst)) {
            known->worst = value;
            known->where = where;
        }
    }
};

inline Evidence& evidence() {
    static Evidence gathered;
    return gathered;
}

}  // namespace millrace::test
