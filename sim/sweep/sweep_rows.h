// The rows of a sweep's folder: one line of JSON per block of replications of one design.
//
//     {"design":"0123456789abcdef","first_replication":0,"replications":20,"warmup_updates":100,
//      "metrics":{"staleness/mean":[1.25,null,...],...},"undefined":{"last_use/mean":"no rollout was used twice"}}
//
// or, for a block that failed, {"design":...,"first_replication":...,"replications":...,"error":"one line"}. A row
// holds nothing that depends on time, thread, rank or host, so equal blocks have equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Replications first_replication .. first_replication + replications - 1 of one design.
struct BlockRow {
    std::string design;  ///< id, 16 hexadecimal digits
    std::int64_t first_replication = 0;
    std::int64_t replications = 0;    ///< at least 1
    std::int64_t warmup_updates = 0;  ///< updates discarded at the start of each replication
    /// By metric key, one number per replication of the block; none where that replication has no value.
    std::map<std::string, std::vector<std::optional<double>>> metrics;
    std::map<std::string, std::string> undefined;  ///< metrics without a value in this block, and why
    std::string error;  ///< why the block failed, one line; then metrics and undefined are empty. Empty: it did not

    bool operator==(const BlockRow&) const = default;
};

/// A line that is no row. what() is the fact without file and line.
struct RowError : std::runtime_error {
    RowError(const std::string& what, int at_column) : std::runtime_error(what), column(at_column) {}
    int column;  ///< from 1
};

/// One line of JSON without its newline. Parsing it gives the same row, every number to the last bit. Throws
/// std::logic_error for what parse_block_row would refuse: a number that is not finite, a metric with another number of
/// values than the block has replications, an id that is none, metrics beside an error, an error of several lines.
std::string block_row_json(const BlockRow& row);

/// The inverse, for a line with or without its newline. Throws RowError; unknown, missing and doubled keys are errors.
BlockRow parse_block_row(std::string_view line);

/// What a last line without a newline means: a file that is still being written, or one that was cut off.
enum class TornLine { is_dropped, is_an_error };

struct BlockRows {
    std::vector<BlockRow> rows;   ///< in the order of the file
    std::size_t whole_bytes = 0;  ///< length of the text up to and with the last newline
};

/// All rows of a file's text. Throws ScenarioError with file, line and column for the first line that is no row; an
/// empty line is none.
BlockRows read_block_rows(std::string_view text, const std::string& file_name, TornLine torn);

/// Whether the text is the id of a design: 16 digits or letters a to f.
bool is_design_id(std::string_view text);

}  // namespace millrace
