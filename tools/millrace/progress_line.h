// How far a run has come.
#pragma once

#include <chrono>
#include <string>

namespace millrace {

/// One line on a terminal, rewritten in place; nothing elsewhere.
class ProgressLine {
   public:
    /// `doing` is what is shown to be done: "simulating".
    ProgressLine(std::string doing, bool wanted);
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    /// `share` of the work is done; `remark` stands behind the time that is left.
    void show(double share, const std::string& remark = "");
    /// The time that is left is reckoned from here on.
    void start_clock() { start_ = std::chrono::steady_clock::now(); }

   private:
    std::string doing_;
    bool shown_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace millrace
