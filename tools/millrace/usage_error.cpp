#include "tools/millrace/usage_error.h"

#include <algorithm>
#include <iostream>
#include <string_view>

#include "sim/scenario/diagnostics.h"
#include "tools/millrace/options.h"

namespace millrace {
namespace {

bool looks_like_an_option(const std::string& word) {
    return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.';
}

/// "run, sweep or merge".
std::string list_of_subcommands(const CLI::App& app) {
    std::string list;
    const std::vector<const CLI::App*> subcommands = app.get_subcommands({});
    for (const CLI::App* subcommand : subcommands) {
        list += list.empty() ? "" : subcommand == subcommands.back() ? " or " : ", ";
        list += subcommand->get_name();
    }
    return list;
}

/// What somebody may have meant who wrote `word` where a subcommand or an option of `app` was expected.
std::string suggestion(const CLI::App& app, std::string word) {
    std::vector<std::string> names;
    const bool is_option = word.starts_with("-");
    if (is_option) {
        word.erase(0, word.find_first_not_of('-'));
        for (const CLI::Option* option : app.get_options()) {
            names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
        }
        // Ties go to the first, and a letter left out is a likelier slip than a wrong one: --sed means --seed, not
        // --set.
        std::stable_sort(names.begin(), names.end(),
                         [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    } else {
        for (const CLI::App* subcommand : app.get_subcommands({})) {
            names.push_back(subcommand->get_name());
        }
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string nearest = nearest_name(word, views);
    return nearest.empty() ? "" : " Did you mean " + std::string(is_option ? "--" : "") + nearest + "?";
}

}  // namespace

int explain_usage_error(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
    const CLI::App* where = &app;
    for (const CLI::App* subcommand : app.get_subcommands({})) {
        if (!words.empty() && words.front() == subcommand->get_name()) {
            where = subcommand;
        }
    }
    std::cerr << "millrace: error: ";
    if (where == &app && !words.empty() && !words.front().starts_with("-")) {
        std::cerr << "there is no subcommand \"" << words.front() << "\"." << suggestion(app, words.front());
    } else if (where == &app && words.empty()) {
        std::cerr << "a subcommand is needed: " << list_of_subcommands(app) << ".";
    } else {
        std::string unknown;
        for (const std::string& word : words) {
            const std::string name = word.substr(0, word.find('='));
            if (looks_like_an_option(word) && where->get_option_no_throw(name) == nullptr) {
                unknown = name;
                break;
            }
        }
        if (!unknown.empty()) {
            std::cerr << "there is no option " << unknown << "." << suggestion(*where, unknown);
        } else {
            std::cerr << error.what();
        }
    }
    std::cerr << "\nSee millrace " << (where == &app ? "" : where->get_name() + " ") << "--help.\n";
    return exit_usage;
}

}  // namespace millrace
