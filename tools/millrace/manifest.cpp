#include "tools/millrace/manifest.h"

#include <unistd.h>

#include <array>
#include <ctime>

#include "version.h"

namespace millrace {

std::string time_of_day() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text.data();
}

nlohmann::ordered_json manifest(const std::string& command_line, const std::string& random_numbers,
                                const std::string& started) {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    nlohmann::ordered_json json;
    json["millrace_manifest"] = 1;
    json["version"] = version;
    json["commit"] = build_commit;
    json["compiler"] = build_compiler;
    json["build_type"] = build_type;
    json["command_line"] = command_line;
    json["random_numbers"] = random_numbers;
    json["host"] = host.data();
    json["started"] = started;
    return json;
}

}  // namespace millrace
