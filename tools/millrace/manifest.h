// Where, when and with what a result was made: everything that may differ between two equal runs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace millrace {

/// Now, in UTC: 2026-01-31T12:00:00Z.
std::string time_of_day();

/// What every manifest begins with. `started` is a time_of_day().
nlohmann::ordered_json manifest(const std::string& command_line, const std::string& random_numbers,
                                const std::string& started);

}  // namespace millrace
