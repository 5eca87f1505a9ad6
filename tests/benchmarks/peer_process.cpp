#include "tests/benchmarks/peer_process.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <stdexcept>

namespace millrace {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (std::string& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

/// This process's environment with `added` in place of variables of the same names.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& added) {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        const bool replaced =
            std::ranges::any_of(added, [&](const auto& pair) { return text.starts_with(pair.first + "="); });
        if (!replaced) {
            variables.push_back(text);
        }
    }
    for (const auto& [name, value] : added) {
        variables.push_back(name + "=" + value);
    }
    return variables;
}

}  // namespace

PeerProcess::PeerProcess(const std::vector<std::string>& command,
                         const std::vector<std::pair<std::string, std::string>>& environment) {
    // A pair of sockets rather than two pipes: a write to a program that has ended is then an error and no signal.
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::runtime_error("no sockets to talk to " + command[0]);
    }
    socket_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::vector<std::string> words = command;
    std::vector<std::string> variables = environment_with(environment);
    const int error = posix_spawnp(&process_, words[0].c_str(), &actions, nullptr, pointers_to(words).data(),
                                   pointers_to(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0) {
        close(socket_);
        throw std::runtime_error("cannot start " + command[0]);
    }
}

PeerProcess::~PeerProcess() {
    close(socket_);
    waitpid(process_, nullptr, 0);
}

void PeerProcess::send(const std::string& line) {
    const std::string text = line + "\n";
    if (::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
        throw std::runtime_error("the peer process has ended");
    }
}

std::string PeerProcess::receive() {
    std::size_t end = received_.find('\n');
    while (end == std::string::npos) {
        std::array<char, 4096> bytes{};
        const ssize_t count = read(socket_, bytes.data(), bytes.size());
        if (count <= 0) {
            throw std::runtime_error("the peer process has ended");
        }
        received_.append(bytes.data(), static_cast<std::size_t>(count));
        end = received_.find('\n');
    }
    const std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    return line;
}

}  // namespace millrace
