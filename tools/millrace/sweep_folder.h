// The folder of a sweep: DIR/sweep.json says which sweep it is, and the rest follows from it.
#pragma once

#include <string>

#include "sim/sweep/design.h"
#include "sim/sweep/row_collection.h"

namespace millrace {

/// What identifies a sweep: 16 hexadecimal digits, from its file, the base scenarios in it and all overrides.
std::string sweep_hash(const Sweep& sweep);

/// Makes the folder and DIR/sweep.json, or checks that it is the folder of this sweep. Throws UsageError when it is of
/// another one, holds other files without being a sweep's, or cannot be made.
void begin_sweep_folder(const std::string& folder, const Sweep& sweep);

/// The sweep of a folder, from DIR/sweep.json alone. Throws UsageError when it is no folder of a sweep, ScenarioError
/// or std::runtime_error when DIR/sweep.json has been changed.
Sweep read_sweep_folder(const std::string& folder);

/// DIR/merged.jsonl, the rows of all files in the order of the designs and of their replications.
std::string merged_rows_file(const std::string& folder);

/// Writes it.
void write_merged_rows(const std::string& folder, const RowCollection& rows);

}  // namespace millrace
