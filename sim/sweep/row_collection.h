// The rows of a sweep from all the files that its processes have written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/sweep/design.h"
#include "sim/sweep/sweep_rows.h"

namespace millrace {

/// Rows by design and first replication: in whatever order they came, the collection is the same.
class RowCollection {
   public:
    explicit RowCollection(const Sweep& sweep);

    /// A row that is there already is left alone. Throws std::runtime_error when it differs from the one that is there
    /// or is of no design of the sweep; `where` is the file it comes from, for that message. Rows of unknown designs
    /// wait where the sweep may grow.
    void add(BlockRow row, const std::string& where);

    /// Takes in the designs that the sweep has got since, with the rows that were waiting for them.
    void learn_designs(const Sweep& sweep);
    /// Rows of designs that the sweep has not, or not yet.
    std::size_t waiting() const { return waiting_.size(); }
    /// Throws std::runtime_error when there are such rows: of a sweep that has all its designs they are somebody
    /// else's.
    void refuse_waiting() const;

    /// Null: it is not there.
    const BlockRow* find(std::size_t design, std::int64_t first_replication) const;

    /// Of one design, by first replication.
    const std::map<std::int64_t, BlockRow>& of(std::size_t design) const { return rows_[design]; }
    std::size_t size() const;

    /// All rows, each with its newline: designs in the order of the sweep, their blocks in order of replication.
    std::string text() const;

   private:
    std::unordered_map<std::string, std::size_t> design_by_id_;
    std::vector<std::map<std::int64_t, BlockRow>> rows_;  ///< by design
    bool may_grow_;
    std::vector<std::pair<BlockRow, std::string>> waiting_;  ///< with where they come from
};

/// Adds the rows of all files runs*.jsonl in `folder`, in the order of their names. A line without its end is one that
/// somebody else is writing, and left out. Throws ScenarioError for a line that is no row, and as add() does.
void read_rows(const std::string& folder, RowCollection& rows);

}  // namespace millrace
