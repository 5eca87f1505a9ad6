// A file that a test writes.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace millrace::test {

/// A path of its own for each test, gone with it.
class TemporaryFile {
   public:
    explicit TemporaryFile(const std::string& name)
        : path_((std::filesystem::temp_directory_path() / ("millrace_test_" + name)).string()) {
        std::filesystem::remove(path_);
    }
    ~TemporaryFile() { std::filesystem::remove(path_); }
    const std::string& path() const { return path_; }

    std::string bytes() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void set_bytes(const std::string& bytes) const {
        std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    }

   private:
    std::string path_;
};

}  // namespace millrace::test
