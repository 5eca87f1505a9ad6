// The result of learning: as a JSON document, as rows of numbers, as a table for people.
#pragma once

#include <cstdint>
#include <string>

#include "model/learn.h"
#include "sim/scenario/learn_file.h"
#include "tools/millrace/learn_curve.h"

namespace millrace {

struct LearnOutcome {
    LearnCurve curve;
    LearnStart start;
    LearnResult result;
    // These differ from run to run; the documents leave them out.
    std::string backend;
    double warm_start_s = 0.0;      ///< until theta_0 was there
    double learning_s = 0.0;        ///< after that, evaluations included
    std::int64_t updates_made = 0;  ///< in this time: fewer than in all after a resume
};

/// The same bytes for any number of threads, and whether or not the run was interrupted and resumed.
std::string learn_json(const LearnFile& file, const LearnOutcome& outcome);

/// The curve: one row per evaluation and replication.
std::string learn_csv(const LearnOutcome& outcome);

/// Start and end of every replication, their median and quartiles, and how long it took.
std::string learn_table(const LearnFile& file, const LearnOutcome& outcome);

/// Quartile 1, 2 or 3 by linear interpolation between order statistics (Hyndman, Fan 1996, definition 7).
double quartile(std::vector<double> values, int number);

}  // namespace millrace
