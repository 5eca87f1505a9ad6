// The files with which a decoder and its schema are tested, and what both must have in common.
//
// A corpus is a folder with good/ and bad/ files, expected.tsv (every problem of every bad file) and required.tsv.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/scenario/diagnostics.h"
#include "sim/scenario/learn_file.h"
#include "sim/scenario/vocabulary.h"

namespace millrace::corpus {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

inline const fs::path source_dir = MILLRACE_SOURCE_DIR;

inline std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

inline std::vector<fs::path> json_files(const fs::path& directory) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(directory)) {
        if (entry.path().extension() == ".json") {
            files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

enum class FileKind { scenario, learn_file };

/// The files of scenarios/learn that are of this kind: pipelines with a learner stand there beside learn files.
inline std::vector<fs::path> shipped_to_learn(FileKind kind) {
    std::vector<fs::path> files = json_files(source_dir / "scenarios/learn");
    std::erase_if(files, [&](const fs::path& file) {
        return is_learn_file(std::string_view(read(file))) != (kind == FileKind::learn_file);
    });
    return files;
}

/// Rows of a tab-separated file without its comments.
inline std::vector<std::vector<std::string>> table(const fs::path& path) {
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines(read(path));
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line.front() == '#') {
            continue;
        }
        std::vector<std::string>& row = rows.emplace_back();
        std::istringstream fields(line);
        for (std::string field; std::getline(fields, field, '\t');) {
            row.push_back(field);
        }
    }
    return rows;
}

template <typename Decode>
std::vector<ScenarioProblem> problems_of(const Decode& decode) {
    try {
        decode();
        return {};
    } catch (const ScenarioError& error) {
        return error.problems();
    }
}

/// Every bad file is rejected with the right place, key and suggestion. `load` decodes the file of a path.
template <typename Load>
void check_bad_files(const fs::path& folder, std::size_t at_least, const Load& load) {
    std::map<std::string, std::vector<std::string>> expected;
    for (const std::vector<std::string>& row : table(folder / "expected.tsv")) {
        REQUIRE(row.size() == 6);
        expected[row[0]].push_back(row[1] + ":" + row[2] + " " + row[3] + " ? " + row[4]);
    }
    const std::vector<fs::path> files = json_files(folder / "bad");
    CHECK(files.size() >= at_least);
    CHECK(files.size() == expected.size());
    for (const fs::path& file : files) {
        CAPTURE(file.filename().string());
        std::vector<std::string> found;
        try {
            load(file.string());
        } catch (const ScenarioError& error) {
            for (const ScenarioProblem& problem : error.problems()) {
                found.push_back(std::to_string(problem.line) + ":" + std::to_string(problem.column) + " " +
                                problem.key + " ? " + problem.suggestion);
                // Editors read this form.
                CHECK(problem.rendered.starts_with(file.string() + ":" + std::to_string(problem.line) + ":" +
                                                   std::to_string(problem.column) + ": error: "));
                CHECK(std::string(error.what()).find(problem.message) != std::string::npos);
            }
        }
        CHECK(found == expected[file.filename().string()]);
    }
}

/// Keys of a sweep file whose objects are values for a scenario: what they may contain is the scenario's business.
inline bool is_opaque(const std::string& under, const std::string& key) {
    return key == "values" || under == "set";
}

/// Calls `visit(object, name)` for every object in the document, with the name required.tsv has for it.
template <typename Visit>
void for_each_object(ordered_json& node, const std::string& under, const Visit& visit) {
    if (node.is_array()) {
        for (ordered_json& element : node) {
            for_each_object(element, under, visit);
        }
    } else if (node.is_object()) {
        visit(node, node.contains("kind") ? node["kind"].get<std::string>() : under);
        for (auto& [key, child] : node.items()) {
            if (!is_opaque(under, key)) {
                for_each_object(child, key, visit);
            }
        }
    }
}

/// Every object of every file is rejected when it loses a required key or gains an unknown one. `decode` decodes a
/// text. Returns how many such changes there were.
template <typename Decode>
int check_mutations(const fs::path& folder, const std::vector<fs::path>& files, const Decode& decode) {
    std::map<std::string, std::vector<std::string>> required;
    for (const std::vector<std::string>& row : table(folder / "required.tsv")) {
        std::istringstream keys(row.at(1));
        for (std::string key; keys >> key;) {
            required[row[0]].push_back(key);
        }
    }
    int mutations = 0;
    for (const fs::path& file : files) {
        CAPTURE(file.filename().string());
        ordered_json document = ordered_json::parse(read(file));
        for_each_object(document, ".", [&](ordered_json& object, const std::string& name) {
            CAPTURE(name);
            const ordered_json original = object;
            object["no_such_key"] = 1;
            const auto unknown = problems_of([&] { decode(document.dump(2)); });
            REQUIRE(unknown.size() == 1);
            CHECK(unknown.front().key.ends_with("no_such_key"));
            object = original;
            ++mutations;
            for (const std::string& key : required[name]) {
                if (!original.contains(key)) {
                    continue;
                }
                CAPTURE(key);
                object.erase(key);
                const auto missing = problems_of([&] { decode(document.dump(2)); });
                REQUIRE(!missing.empty());
                // Of a law with two ways of being stated, the kind is to blame.
                const std::string& blamed = missing.front().key;
                CHECK((blamed == key || blamed.ends_with("." + key) || blamed.ends_with(".kind")));
                object = original;
                ++mutations;
            }
        });
    }
    return mutations;
}

/// The branch of an object's schema for one of its kinds.
inline const nlohmann::json& schema_of_kind(const nlohmann::json& object, std::string_view kind) {
    for (const nlohmann::json& branch : object.at("allOf")) {
        if (branch.at("if").at("properties").at("kind").at("const") == kind) {
            return branch.at("then");
        }
    }
    FAIL("the schema has no kind " << kind);
    return object;
}

/// The schema's part for `shape` has the same keys, required keys and defaults, but for the defaults of keys in
/// `dependent`, which the table cannot state.
inline void check_same_keys(const nlohmann::json& part, const ObjectShape& shape,
                            const std::set<std::string>& dependent) {
    CAPTURE(std::string(shape.path));
    CAPTURE(std::string(shape.kind));
    CHECK(part.at("additionalProperties") == false);
    const std::set<std::string> required = part.value("required", std::set<std::string>{});
    std::set<std::string> keys;
    for (const KeyRule& key : shape.keys) {
        const std::string name(key.name);
        CAPTURE(name);
        keys.insert(name);
        const nlohmann::json& rule = part.at("properties").at(name);
        if (name != "kind") {
            CHECK(required.contains(name) == (key.presence == KeyRule::Presence::required));
        }
        if (key.presence == KeyRule::Presence::defaulted) {
            CHECK(rule.at("default") == nlohmann::json::parse(key.default_json));
        } else if (!dependent.contains(name)) {
            CHECK((rule.is_boolean() || !rule.contains("default")));
        }
    }
    std::set<std::string> properties;
    for (const auto& [name, rule] : part.at("properties").items()) {
        properties.insert(name);
    }
    CHECK(properties == keys);
}

}  // namespace millrace::corpus
