#include "sim/sweep/row_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace millrace {
namespace {

constexpr std::chrono::seconds between_syncs{1};  // what a loss of power may cost; a process that ends loses nothing

/// Bytes up to and with the last newline.
std::int64_t whole_rows(int file, std::int64_t size) {
    std::array<char, 65536> piece{};
    std::int64_t end = size;
    while (end > 0) {
        const std::int64_t begin = std::max<std::int64_t>(0, end - static_cast<std::int64_t>(piece.size()));
        const ssize_t got = pread(file, piece.data(), static_cast<std::size_t>(end - begin), begin);
        if (got != end - begin) {
            return -1;
        }
        const std::size_t newline = std::string_view(piece.data(), static_cast<std::size_t>(got)).rfind('\n');
        if (newline != std::string_view::npos) {
            return begin + static_cast<std::int64_t>(newline) + 1;
        }
        end = begin;
    }
    return 0;
}

}  // namespace

RowFile::RowFile(const std::string& path) : path_(path) {
    const auto refuse = [&](const std::string& what) {
        const std::string sentence = "cannot write " + path + ": " + what;
        if (file_ >= 0) {
            close(file_);
        }
        throw std::runtime_error(sentence);
    };
    file_ = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) {
        refuse(std::strerror(errno));
    }
    if (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {  // file systems without locks are taken as is
        refuse("another process is writing it");
    }
    const std::int64_t size = lseek(file_, 0, SEEK_END);
    size_ = size < 0 ? -1 : whole_rows(file_, size);
    if (size_ < 0 || (size_ < size && ftruncate(file_, size_) != 0)) {
        refuse(std::strerror(errno));
    }
}

RowFile::~RowFile() {
    fdatasync(file_);
    close(file_);
}

void RowFile::append(std::string_view row) {
    const std::string line = std::string(row) + '\n';
    const std::lock_guard lock(mutex_);
    if (torn_) {
        throw std::runtime_error("could not write to " + path_ + " any more");
    }
    ssize_t written = 0;
    do {
        written = write(file_, line.data(), line.size());
    } while (written < 0 && errno == EINTR);
    if (written != static_cast<ssize_t>(line.size())) {
        const std::string why = written < 0 ? std::strerror(errno) : "the disk is full";
        torn_ = ftruncate(file_, size_) != 0;  // then nothing may stand behind it: the next start drops it
        throw std::runtime_error("could not write a row to " + path_ + ": " + why);
    }
    size_ += written;
    if (std::chrono::steady_clock::now() - synced_ >= between_syncs) {
        sync_locked();
    }
}

void RowFile::sync() {
    const std::lock_guard lock(mutex_);
    sync_locked();
}

void RowFile::sync_locked() {
    if (fdatasync(file_) != 0 && errno != EINVAL && errno != EROFS) {  // those two: it is no file on a disk
        throw std::runtime_error("could not write all of " + path_ + ": " + std::strerror(errno));
    }
    synced_ = std::chrono::steady_clock::now();
}

}  // namespace millrace
