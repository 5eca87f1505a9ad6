#include "tools/millrace/checkpoint_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "model/weights.h"
#include "tools/millrace/options.h"
#include "tools/millrace/safe_file.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The part of the settings that decides what the updates do and how they are looked at. Not an object if `text` is not
/// that of settings.
Json what_must_agree(const std::string& text) {
    Json settings = Json::parse(text, nullptr, false);
    for (const char* free : {"name", "description", "horizon"}) {
        if (settings.is_object()) {
            settings.erase(free);
        }
    }
    return settings;
}

/// The dotted path of the first value that differs, or an empty text.
std::string first_difference(const Json& a, const Json& b, const std::string& path = "") {
    if (a == b) {
        return "";
    }
    if (a.is_object() && b.is_object()) {
        for (const auto& [key, value] : a.items()) {
            const std::string here = path.empty() ? key : path + "." + key;
            if (!b.contains(key)) {
                return here;
            }
            if (std::string found = first_difference(value, b.at(key), here); !found.empty()) {
                return found;
            }
        }
        for (const auto& [key, value] : b.items()) {
            if (!a.contains(key)) {
                return path.empty() ? key : path + "." + key;
            }
        }
    }
    return path;
}

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::string how_to_resume(const std::string& folder) {
    return "The same command with --checkpoint " + folder + " --resume goes on.\n";
}

CheckpointFolder::CheckpointFolder(const std::string& path, bool resume, const std::string& settings)
    : path_(path), settings_(settings) {
    std::error_code failed;
    fs::create_directories(path, failed);
    if (failed || !fs::is_directory(path, failed)) {
        throw UsageError("cannot make the folder " + path + (failed ? ": " + failed.message() : ""));
    }
    std::vector<fs::path> unfinished;  // left behind by a run that was killed while it wrote
    for (const auto& entry : fs::directory_iterator(path, failed)) {
        holds_state_ = holds_state_ || entry.path().extension() == ".ckpt";
        if (entry.path().filename().string().find(".ckpt.unfinished-") != std::string::npos) {
            unfinished.push_back(entry.path());
        }
    }
    const bool holds_settings = fs::exists(settings_path(), failed);
    if (holds_state_ && !resume) {
        throw UsageError(path + " holds the checkpoint of a run: --resume goes on with it");
    }
    if (!holds_state_ && !holds_settings && resume) {
        throw UsageError("there is nothing to resume in " + path);
    }
    if (resume) {
        if (!holds_settings) {
            throw std::runtime_error(path + " cannot be resumed: its settings.json is missing");
        }
        const Json before = what_must_agree(contents(settings_path()));
        if (!before.is_object()) {
            throw std::runtime_error(path + " cannot be resumed: its settings.json is damaged");
        }
        const std::string there = first_difference(before, what_must_agree(settings_));
        if (!there.empty()) {
            throw std::runtime_error("the run in " + path + " has other settings, first of all " + there +
                                     "; only the horizon may change");
        }
    }
    static_cast<void>(SafeFile(settings_path()));  // says what is wrong with the folder before any work is done
    for (const fs::path& file : unfinished) {
        fs::remove(file, failed);
    }
    if (!holds_state_) {
        keep_settings();  // so that a run that is stopped before its first evaluation can be resumed too
    }
}

std::uint64_t CheckpointFolder::settings_hash() const {
    const std::string text = what_must_agree(settings_).dump();
    return content_hash(std::as_bytes(std::span(text)));
}

std::string CheckpointFolder::replication_path(std::int64_t replication) const {
    return path_ + "/replication-" + std::to_string(replication) + ".ckpt";
}

void CheckpointFolder::keep_settings() {
    SafeFile settings(settings_path());
    settings.stream() << settings_ << '\n';
    settings.commit();
}

LearnCurve CheckpointFolder::start(std::int64_t update, std::int64_t replications) {
    LearnCurve curve;
    if (update > 0) {  // what was reported of update 0 will be reported again
        std::ifstream file(curve_path(), std::ios::binary);
        try {
            curve.read(file, update, static_cast<std::size_t>(replications));
        } catch (const std::exception& error) {
            throw std::runtime_error(path_ + " cannot be resumed: " + error.what());
        }
    }
    keep_settings();
    SafeFile kept(curve_path());
    kept.stream() << curve.text();
    kept.commit();
    curve_.open(curve_path(), std::ios::binary | std::ios::app);
    return curve;
}

void CheckpointFolder::append(const std::string& lines) {
    curve_ << lines << std::flush;
    if (!curve_) {
        throw std::runtime_error("could not write to " + curve_path());
    }
}

}  // namespace millrace
