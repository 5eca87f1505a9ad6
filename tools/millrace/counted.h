// Counts with their nouns, for sentences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace {

/// "1 GPU", "2 GPUs".
inline std::string counted(std::int64_t count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}
inline std::string counted(std::size_t count, const std::string& noun) {
    return counted(static_cast<std::int64_t>(count), noun);
}

}  // namespace millrace
