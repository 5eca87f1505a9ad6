// What a sweep says while it runs: on a terminal a line that is rewritten in place, elsewhere (a log file, a job array)
// a line a minute.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "sim/sweep/sweep_runner.h"
#include "tools/millrace/progress_line.h"

namespace millrace {

class SweepProgressReport {
   public:
    explicit SweepProgressReport(bool wanted);

    /// One line before anything is simulated: what there is to do, and what is there already.
    void begin(const Sweep& sweep, const std::string& folder, std::int64_t rows_there) const;
    void show(const SweepProgress& progress);

   private:
    bool wanted_;
    bool in_place_;
    ProgressLine line_;
    std::chrono::steady_clock::time_point said_ = std::chrono::steady_clock::now();
};

}  // namespace millrace
