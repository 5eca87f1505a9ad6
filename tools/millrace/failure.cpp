#include "tools/millrace/failure.h"

#include <iostream>
#include <new>

#include "sim/scenario/diagnostics.h"
#include "tools/millrace/options.h"

namespace millrace {
namespace {

struct Failure {
    int exit_code;
    std::string text;
    bool says_where = false;  ///< its lines begin with a place in a file
};

Failure failure_of(const std::exception_ptr& problem) {
    try {
        std::rethrow_exception(problem);
    } catch (const UsageError& error) {
        return {exit_usage, error.what()};
    } catch (const ScenarioError& error) {
        return {exit_bad_input, error.what(), true};
    } catch (const std::bad_alloc&) {
        return {exit_failed,
                "there is not enough memory for this; in a scenario store.capacity and workers.count x workers.slots "
                "decide how much it takes and --jobs how often, in a learn file learner.model and replications"};
    } catch (const std::exception& error) {
        return {exit_failed, error.what()};
    }
}

}  // namespace

int exit_code_of(const std::exception_ptr& problem) {
    return failure_of(problem).exit_code;
}

int report_failure(const std::exception_ptr& problem, const std::string& where) {
    const Failure failure = failure_of(problem);
    std::cerr << (failure.says_where ? "" : "millrace: error" + where + ": ") + failure.text + '\n';
    return failure.exit_code;
}

}  // namespace millrace
