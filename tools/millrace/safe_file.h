// A file that appears under its name only when it is complete.
#pragma once

#include <fstream>
#include <string>

namespace millrace {

/// Writes to a temporary file beside the target. commit() renames it; without that, the target stays as it was.
class SafeFile {
   public:
    /// Throws UsageError when the file cannot be written: before any work is done, not after.
    explicit SafeFile(const std::string& path);
    ~SafeFile();
    SafeFile(const SafeFile&) = delete;
    SafeFile& operator=(const SafeFile&) = delete;

    std::ostream& stream() { return stream_; }
    /// Throws std::runtime_error when not everything could be written.
    void commit();

   private:
    std::string path_;
    std::string temporary_;
    std::ofstream stream_;
    bool committed_ = false;
};

}  // namespace millrace
