#include "sim/scenario/input_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "sim/scenario/defaults.h"
#include "sim/scenario/overrides.h"

namespace millrace {
namespace {

[[noreturn]] void throw_unreadable(const std::string& path, const std::string& reason) {
    ScenarioProblem problem;
    problem.source = path;
    problem.message = "cannot be read: " + reason;
    problem.rendered = path + ": error: " + problem.message + "\n";
    throw ScenarioError({problem});
}

}  // namespace

std::string read_input_file(const std::string& path) {
    if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
        throw_unreadable(path, "it is a directory");
    }
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    if (!file || (file.peek() != std::ifstream::traits_type::eof() && !(text << file.rdbuf()))) {
        throw_unreadable(path, errno != 0 ? std::strerror(errno) : "input error");
    }
    return text.str();
}

Diagnostics diagnostics_of(std::string_view text, const std::string& file_name,
                           const std::vector<std::string>& overrides) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text.starts_with(byte_order_mark)) {
        text.remove_prefix(byte_order_mark.size());
    }
    return Diagnostics(file_name, std::string(text), overrides);
}

JsonNode parse_input(Diagnostics& diagnostics, const Vocabulary& vocabulary) {
    JsonNode root;
    if (!parse_json(root, 0, 0, diagnostics)) {
        diagnostics.throw_if_any();
    }
    if (root.kind != JsonNode::Kind::object) {
        return root;
    }
    // What a result came from stands in it, and would repeat it.
    for (const auto& [name, source] :
         {std::pair{"millrace_result", "scenario"}, std::pair{"millrace_learn_result", "settings"}}) {
        if (const JsonNode* mark = root.find(name)) {
            diagnostics.report(mark->key_place, name, "this is the result of a run, not what it was made from",
                               "that stands in it under \"" + std::string(source) + "\"");
            diagnostics.throw_if_any();
        }
    }
    if (diagnostics.override_count() > 0) {
        fill_default_kinds(root, vocabulary);
    }
    for (int source = 1; source <= diagnostics.override_count(); ++source) {
        apply_override(root, source, diagnostics);
    }
    return root;
}

bool is_sweep_file(std::string_view text) {
    Diagnostics ignored = diagnostics_of(text, "", {});
    JsonNode root;
    return parse_json(root, 0, 0, ignored) && is_sweep_file(root);
}

bool is_sweep_file(const JsonNode& root) {
    const bool has_pipeline = root.find("workers") != nullptr || root.find("store") != nullptr;
    return root.find("families") != nullptr || (root.find("objectives") != nullptr && !has_pipeline);
}

std::string resolved_json(JsonNode root) {
    std::erase_if(root.children, [](const JsonNode& member) { return member.key == "$schema"; });
    return canonical_json(root);
}

}  // namespace millrace
