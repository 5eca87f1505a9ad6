// Another program to race against: started once, told line by line what to do.
#pragma once

#include <sys/types.h>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

class PeerProcess {
   public:
    /// Starts `command`, found on the PATH, with `environment` added to this process's own. Throws std::runtime_error.
    PeerProcess(const std::vector<std::string>& command,
                const std::vector<std::pair<std::string, std::string>>& environment);
    /// Closes the program's input and waits for it to end.
    ~PeerProcess();
    PeerProcess(const PeerProcess&) = delete;
    PeerProcess& operator=(const PeerProcess&) = delete;

    /// Both throw std::runtime_error when the program has ended.
    void send(const std::string& line);
    std::string receive();

   private:
    int socket_ = -1;
    pid_t process_ = -1;
    std::string received_;
};

}  // namespace millrace
