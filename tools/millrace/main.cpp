// The `millrace` command. Its subcommands and their options stand in subcommands.cpp, what each does in a file of its
// own.
#include <CLI/CLI.hpp>
#include <exception>
#include <string>
#include <vector>

#include "tools/millrace/command_line.h"
#include "tools/millrace/failure.h"
#include "tools/millrace/subcommands.h"
#include "tools/millrace/usage_error.h"
#include "version.h"

namespace {

using namespace millrace;

std::string joined(int argc, char** argv) {
    std::string line;
    for (int i = 0; i < argc; ++i) {
        line += (i == 0 ? "" : " ") + std::string(argv[i]);
    }
    return line;
}

std::string version_text() {
    return std::string("millrace ") + version + " (" + build_commit + ", " + build_type + ", " + build_compiler +
           ")\nCPU kernels: " MILLRACE_CPU_KERNELS "\nCUDA kernels: " + (cuda_built ? "built" : "not built") +
           "\nMPI: " + (mpi_built ? "built" : "not built");
}

int run(int argc, char** argv) {
    CLI::App app{
        "Simulates asynchronous RL post-training pipelines: what workers, trainers and a buffer cost, how stale "
        "the data is and how often it is reused. Trains small models by the same methods.",
        "millrace"};
    app.set_version_flag("--version", version_text());
    app.require_subcommand(1);
    app.footer("Exit codes: 0 done, 1 the run failed, 2 usage, 3 bad input file, 130 interrupted.");
    Request request;
    request.command_line = joined(argc, argv);
    add_subcommands(app, request);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        return app.exit(asked);
    } catch (const CLI::ParseError& error) {
        return explain_usage_error(app, error, {argv + 1, argv + argc});
    }
    return request.serve();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (...) {
        return millrace::report_failure(std::current_exception());
    }
}
