#include "tools/millrace/progress_line.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace millrace {

ProgressLine::ProgressLine(std::string doing, bool wanted)
    : doing_(std::move(doing)), shown_(wanted && isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
    if (drawn_) {
        std::fputs("\r\033[K", stderr);
    }
}

void ProgressLine::show(double share, const std::string& remark) {
    if (!shown_ || share <= 0.0) {
        return;
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    std::fprintf(stderr, "\r%s %3.0f %%, %.0f s left%s%s \033[K", doing_.c_str(), 100.0 * share,
                 elapsed.count() * (1.0 - share) / share, remark.empty() ? "" : ", ", remark.c_str());
    drawn_ = true;
}

}  // namespace millrace
