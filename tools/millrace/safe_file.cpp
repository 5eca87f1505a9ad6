#include "tools/millrace/safe_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "tools/millrace/options.h"

namespace millrace {
namespace {

/// A new file beside `path`. Its name has random digits: processes on other nodes may have this one's number.
std::string new_file_beside(const std::string& path) {
    std::random_device random;
    for (;;) {
        const std::string name = path + ".part" + std::to_string(getpid()) + "-" + std::to_string(random());
        if (const int file = open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666); file >= 0) {
            close(file);
            return name;
        }
        if (errno != EEXIST) {
            throw UsageError("cannot write " + path + ": " + std::strerror(errno));
        }
    }
}

/// Out of the system's memory and onto the disk, so that a name never stands for less than the whole after a power
/// loss. Folders too: their entries are what renaming changes.
bool sync(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool done = file >= 0 && fsync(file) == 0;
    if (file >= 0) {
        close(file);
    }
    return done;
}

}  // namespace

SafeFile::SafeFile(const std::string& path) : path_(path) {
    // Through symbolic links, into the file they name: renaming would replace the link.
    constexpr int most_links = 40;  // as many as Linux follows
    for (int links = 0; links < most_links; ++links) {
        std::error_code not_a_link;
        const std::filesystem::path target = std::filesystem::read_symlink(path_, not_a_link);
        if (not_a_link) {
            break;
        }
        path_ = (std::filesystem::path(path_).parent_path() / target).string();
    }
    if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
        throw UsageError("cannot write " + path + ": it is a directory");
    }
    if (std::error_code ignored;
        std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
        throw UsageError("cannot write " + path + ": it is not a regular file");  // renaming would replace a device
    }
    temporary_ = new_file_beside(path_);
    errno = 0;
    stream_.open(temporary_, std::ios::binary | std::ios::trunc);
    if (!stream_) {
        throw UsageError("cannot write " + path + ": " + std::strerror(errno));
    }
}

SafeFile::~SafeFile() {
    if (!committed_) {
        std::remove(temporary_.c_str());
    }
}

void SafeFile::commit() {
    stream_.close();
    if (!stream_ || !sync(temporary_) || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
        throw std::runtime_error("could not write all of " + path_ + ": " + std::strerror(errno));
    }
    committed_ = true;
    // Some file systems cannot do this for folders; the file itself is whole in any case.
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    static_cast<void>(sync(folder.empty() ? "." : folder));
}

}  // namespace millrace
