// A file of rows that grows at its end and outlives whoever writes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace millrace {

/// A row appears in the file whole: each is one write() behind the last. A row that was cut off, by a full disk or by
/// the end of the process, is taken away again, here or when the file is next opened.
class RowFile {
   public:
    /// Creates the file or goes on with it, after dropping what stands behind its last newline. Throws
    /// std::runtime_error with a sentence when it cannot be written or another process is writing it.
    explicit RowFile(const std::string& path);
    ~RowFile();
    RowFile(const RowFile&) = delete;
    RowFile& operator=(const RowFile&) = delete;

    /// `row` without its newline. May be called from several threads. Throws std::runtime_error when it does not fit
    /// on the disk; the file then ends with the row before.
    void append(std::string_view row);

    /// Makes sure that the rows so far survive a loss of power. append() does so by itself every second.
    void sync();

   private:
    void sync_locked();

    std::string path_;
    int file_ = -1;
    std::int64_t size_ = 0;  ///< bytes of whole rows
    bool torn_ = false;      ///< it ends with a part of a row that could not be taken away
    std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
    std::mutex mutex_;
};

}  // namespace millrace
