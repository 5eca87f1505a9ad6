// What a learner reported while it learnt: one row per evaluation and replication, as it stands in files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "model/learn.h"

namespace millrace {

/// A number of a row, and what its metric is called.
struct CurveColumn {
    std::string_view key;
    bool is_metric;  ///< whether its last value is a result of the run
};

/// In the order of a row, after "update" and "replication".
const std::vector<CurveColumn>& curve_columns();

/// JSON has no word for what is not a number, or not there: null.
nlohmann::ordered_json json_number(std::optional<double> number);

/// The columns of a row that say how good a policy is.
void put_evaluation(nlohmann::ordered_json& row, const Evaluation& evaluation);
/// Those of the updates since the row before; null where there has been none.
void put_statistics(nlohmann::ordered_json& row, const std::optional<UpdateStatistics>& statistics);

class LearnCurve {
   public:
    using Row = nlohmann::ordered_json;

    /// Adds the rows of a report and returns them as text, one line each.
    std::string add(const LearnReport& report);

    /// Takes back rows that add() wrote, up to the update `last` from which learning goes on. A line that was cut off
    /// when the program was killed ends the reading. Throws std::runtime_error when rows are missing.
    void read(std::istream& in, std::int64_t last, std::size_t replications);

    bool empty() const { return rows_.empty(); }
    const std::vector<Row>& rows() const { return rows_; }
    std::int64_t last_update() const;
    std::vector<std::int64_t> updates() const;

    /// The values of a column at the first or at the last update, one per replication; without those that are
    /// undefined.
    std::vector<double> at_start(std::string_view key) const;
    std::vector<double> at_end(std::string_view key) const;

    /// The values of one replication over the updates, null where undefined.
    Row series(std::string_view key, std::int64_t replication) const;

    std::string text() const;

   private:
    std::vector<double> at(std::int64_t update, std::string_view key) const;

    std::vector<Row> rows_;  ///< by update, then by replication
};

}  // namespace millrace
