// Runs the sample kernels under a sanitizer: right ones when called with "none", else the one with the fault that is
// named. Arrays have exactly the size they need, so that the first element too far is one too many.
#include <cstddef>
#include <exception>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/kernels/sample_kernels.h"

using namespace millrace;

namespace {

std::vector<float> numbers(int count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
}

void multiply(Fault fault) {
    const int rows = 7, columns = 11, inner = 18;  // two blocks
    std::vector<float> product = numbers(rows * columns);
    multiply_tiled(fault, numbers(rows * inner).data(), numbers(inner * columns).data(), product.data(), rows, columns,
                   inner);
}

void sum(Fault fault) {
    const int rows = 3, columns = 20;
    std::vector<float> sums = numbers(rows);
    sum_rows(fault, numbers(rows * columns).data(), sums.data(), rows, columns);
}

void reverse(Fault fault) {
    const int rows = 3, columns = 20;
    std::vector<float> reversed = numbers(rows * columns);
    reverse_rows(fault, numbers(rows * columns).data(), reversed.data(), rows, columns);
}

void rotate_warps(Fault fault) {
    const int warps = 3;
    std::vector<float> rotated = numbers(32 * warps);
    rotate(fault, numbers(32 * warps).data(), rotated.data(), warps);
}

void run(const std::string& name) {
    if (name == "none") {
        for (const auto kernel : {multiply, sum, reverse, rotate_warps}) {
            kernel(Fault::none);
        }
    } else if (name == "no_barrier_after_load") {
        multiply(Fault::no_barrier_after_load);
    } else if (name == "no_barrier_before_load") {
        multiply(Fault::no_barrier_before_load);
    } else if (name == "row_too_many") {
        reverse(Fault::row_too_many);
    } else if (name == "shared_memory_short") {
        reverse(Fault::shared_memory_short);
    } else if (name == "no_syncwarp") {
        rotate_warps(Fault::no_syncwarp);
    } else if (name == "blocks_overlap") {
        rotate_warps(Fault::blocks_overlap);
    } else {
        throw std::invalid_argument("No fault is called '" + name + "'.");
    }
}

}  // namespace

int main(int count, char** arguments) {
    try {
        run(count == 2 ? arguments[1] : "");
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
