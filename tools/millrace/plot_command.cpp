#include "tools/millrace/plot_command.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "tools/millrace/options.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// The interpreter that Debian's python3-matplotlib and python3-plotly are packages of; another one in PATH lacks them.
constexpr const char* python = "/usr/bin/python3";

fs::path find_script(const std::string& name, const std::string& plots) {
    if (!plots.empty()) {
        if (!fs::exists(fs::path(plots) / name)) {
            throw UsageError("--plots " + plots + ": there is no " + name + " in it");
        }
        return fs::path(plots) / name;
    }
    std::error_code unreadable;
    const fs::path program = fs::read_symlink("/proc/self/exe", unreadable).parent_path();
    for (const char* place : {"../share/millrace/plots", "../plots", "../../plots"}) {
        const fs::path script = (program / place / name).lexically_normal();
        if (!program.empty() && fs::exists(script)) {
            return script;
        }
    }
    throw UsageError("the scripts that draw figures are not beside this program (" + program.string() +
                     "); say where they are with --plots DIR, the folder plots/ of millrace's sources");
}

}  // namespace

int run_plot_script(const std::string& name, const std::string& plots, const std::vector<std::string>& words) {
    const std::string script = find_script(name, plots).string();
    // Nothing from the user's own Python installation, and no __pycache__ beside the scripts.
    std::vector<std::string> command = {python, "-E", "-s", "-B", script};
    command.insert(command.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : command) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);

    std::cout.flush();
    pid_t child = 0;
    if (const int error = posix_spawn(&child, python, nullptr, nullptr, arguments.data(), environ); error != 0) {
        throw std::runtime_error(
            std::string("cannot start ") + python + ": " + std::strerror(error) +
            "\nFigures need these packages:  apt-get install --no-install-recommends python3 python3-matplotlib "
            "python3-plotly");
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            throw std::runtime_error(std::string("lost track of ") + python + ": " + std::strerror(errno));
        }
    }
    if (WIFSIGNALED(status)) {
        if (WTERMSIG(status) == SIGINT) {
            return exit_interrupted;
        }
        throw std::runtime_error(std::string(python) + " was ended by signal " + std::to_string(WTERMSIG(status)));
    }
    return WEXITSTATUS(status);
}

void take_plots_option(std::vector<std::string>& words, std::string& plots) {
    const std::string option = "--plots";
    for (auto word = words.begin(); word != words.end();) {
        const bool in_one_word = word->starts_with(option + "=");
        if (*word != option && !in_one_word) {
            ++word;
            continue;
        }
        const auto next = word + 1;
        const std::string folder = in_one_word ? word->substr(option.size() + 1) : next != words.end() ? *next : "";
        if (folder.empty()) {
            throw UsageError(option + " needs the name of a folder");
        }
        if (!plots.empty()) {
            throw UsageError(option + " is given twice");
        }
        plots = folder;
        word = words.erase(word, in_one_word ? next : next + 1);
    }
}

}  // namespace millrace
