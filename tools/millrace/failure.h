// How the program says that something went wrong, and the exit code that goes with it.
#pragma once

#include <exception>
#include <string>

namespace millrace {

/// The exit code for an exception that nobody has caught.
int exit_code_of(const std::exception_ptr& problem);

/// Says on standard error what it means to the user; `where`, as in " on rank 2", is put after the word error. Returns
/// its exit code.
int report_failure(const std::exception_ptr& problem, const std::string& where = "");

}  // namespace millrace
