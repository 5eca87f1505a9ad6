// The files that a run was asked for, opened before it starts.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/millrace/safe_file.h"

namespace millrace {

/// What a message calls the files of a command: "the scenario", "the step log".
struct FileNames {
    std::string input;
    std::string log;
};

/// A result with its manifest beside it. Both are null when the result only goes to standard output.
class ResultFiles {
   public:
    /// `output` and `log` may be empty: not wanted. Throws UsageError when a file cannot be written, when two are one,
    /// or when one is the input.
    ResultFiles(const std::string& output, const std::string& log, const std::string& input, const FileNames& names);

    /// Does nothing when there is no result file.
    void write(const std::string& result, const nlohmann::ordered_json& manifest);

   private:
    std::unique_ptr<SafeFile> result_;
    std::unique_ptr<SafeFile> manifest_;
};

}  // namespace millrace
