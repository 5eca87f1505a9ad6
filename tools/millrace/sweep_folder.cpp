#include "tools/millrace/sweep_folder.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "sim/engine/content_hash.h"
#include "sim/sweep/sweep_file.h"
#include "tools/millrace/options.h"
#include "tools/millrace/safe_file.h"

namespace millrace {
namespace {

std::string sweep_json(const std::string& folder) {
    return folder + "/sweep.json";
}

/// The sweep as it stands in the folder, one line of JSON, and its hash.
struct Stored {
    std::string hash;
    std::string resolved_json;
};

Stored stored_sweep(const std::string& folder) {
    std::ifstream stream(sweep_json(folder), std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    const auto json = nlohmann::json::parse(text.view(), nullptr, false);
    if (!stream || !json.is_object() || !json.contains("sweep") || !json.contains("sweep_hash") ||
        !json["sweep_hash"].is_string()) {
        throw std::runtime_error(sweep_json(folder) + " cannot be read: it says which sweep the folder is of");
    }
    return {json["sweep_hash"], json["sweep"].dump()};
}

/// Rows among somebody else's files would look like theirs. Of another process that begins the same folder now there is
/// its sweep.json, whole or not.
void refuse_foreign_folder(const std::string& folder) {
    std::string foreign;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with("sweep.json") && (foreign.empty() || name < foreign)) {
            foreign = name;
        }
    }
    if (!foreign.empty() && !std::filesystem::exists(sweep_json(folder))) {
        throw UsageError("the folder " + folder + " is not empty and is no sweep's: there is " + foreign +
                         " in it, and no sweep.json. Take a new folder, or an empty one");
    }
}

}  // namespace

std::string sweep_hash(const Sweep& sweep) {
    return hash_text(content_hash(sweep.resolved_json));
}

void begin_sweep_folder(const std::string& folder, const Sweep& sweep) {
    const std::string hash = sweep_hash(sweep);
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) {
        throw UsageError("cannot make the folder " + folder + ": " + failed.message());
    }
    if (std::filesystem::exists(sweep_json(folder))) {
        if (const std::string there = stored_sweep(folder).hash; there != hash) {
            throw UsageError("the folder " + folder + " is of another sweep (" + there + ") than this one (" + hash +
                             "): a sweep file, a base scenario or an override has changed. Take a new folder, or "
                             "remove this one to start over");
        }
        return;
    }
    refuse_foreign_folder(folder);
    // Processes that begin at once write the same bytes, each to a file of its own first.
    SafeFile file(sweep_json(folder));
    file.stream() << "{\"millrace_sweep\":1,\"sweep_hash\":\"" << hash << "\",\"sweep\":" << sweep.resolved_json
                  << "}\n";
    file.commit();
}

Sweep read_sweep_folder(const std::string& folder) {
    if (!std::filesystem::exists(sweep_json(folder))) {
        throw UsageError(folder + " is not the folder of a sweep: there is no " + sweep_json(folder));
    }
    const Stored stored = stored_sweep(folder);
    Sweep sweep = decode_resolved_sweep(stored.resolved_json, sweep_json(folder));
    if (sweep_hash(sweep) != stored.hash) {
        throw std::runtime_error(sweep_json(folder) +
                                 " has been changed, or was written by another version of millrace");
    }
    return sweep;
}

std::string merged_rows_file(const std::string& folder) {
    return folder + "/merged.jsonl";
}

void write_merged_rows(const std::string& folder, const RowCollection& rows) {
    SafeFile file(merged_rows_file(folder));
    file.stream() << rows.text();
    file.commit();
}

}  // namespace millrace
