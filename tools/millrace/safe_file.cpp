#include "tools/millrace/safe_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tools/millrace/options.h"

namespace millrace {

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
    temporary_ = path_ + ".part" + std::to_string(getpid());

    if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
        throw UsageError("cannot write " + path + ": it is a directory");
    }
    if (std::error_code ignored;
        std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
        throw UsageError("cannot write " + path + ": it is not a regular file");  // renaming would replace a device
    }
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
    if (!stream_ || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
        throw std::runtime_error("could not write all of " + path_ + ": " + std::strerror(errno));
    }
    committed_ = true;
}

}  // namespace millrace
