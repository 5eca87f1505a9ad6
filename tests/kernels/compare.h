// How outcomes of kernel cases are compared.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backends.h"
#include "kernels/cpu/instruction_set.h"
#include "tests/kernels/cases.h"

namespace millrace::test {

/// Sum of squared differences over sum of squares; infinite where a number is missing.
inline double normalised_square_error(const std::vector<double>& got, const std::vector<double>& want) {
    if (got.size() != want.size()) {
        return std::numeric_limits<double>::infinity();
    }
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (!std::isfinite(got[i]) || !std::isfinite(want[i])) {
            return std::numeric_limits<double>::infinity();
        }
        error += (got[i] - want[i]) * (got[i] - want[i]);
        size += want[i] * want[i];
    }
    return error / (size > 0 ? size : 1);
}

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// The CPU in single precision, once per instruction set that this machine can execute.
struct CpuUnderTest {
    std::string name;
    std::function<std::unique_ptr<Backend<Float32>>(int threads)> make;
};

inline std::vector<CpuUnderTest> cpus_under_test() {
    std::vector<CpuUnderTest> list;
    for (const InstructionSet set : available_instruction_sets()) {
        list.push_back({name_of(set), [set](int threads) { return make_cpu_backend(threads, set); }});
    }
    return list;
}

/// Runs the whole list on `backend` and in double precision, both from the same rounded inputs.
template <typename P>
void check_against_reference(Backend<P>& backend, double limit, double (*round_real)(double),
                             double (*round_operand)(double), const std::vector<Shape>& shapes = case_shapes()) {
    const auto reference = make_reference_backend(1);
    const auto cases = kernel_cases<P>(shapes);
    const auto reference_cases = kernel_cases<Float64>(shapes);
    for (std::size_t i = 0; i < cases.size(); ++i) {
        CAPTURE(cases[i].name);
        const Setting setting{.replicas = 2, .round_real = round_real, .round_operand = round_operand};
        const Outcome got = run_case(cases[i], backend, setting);
        const Outcome want = run_case(reference_cases[i], *reference, setting);
        REQUIRE(got.size() == want.size());
        for (const auto& [array, numbers] : want) {
            CAPTURE(array);
            CHECK(normalised_square_error(got.at(array), numbers) < limit);
        }
    }
}

/// Several replicas at once must be several single runs, bit for bit.
template <typename P>
void check_replicas(Backend<P>& backend, const std::vector<Shape>& shapes = case_shapes()) {
    constexpr int replicas = 3;
    for (const auto& one : kernel_cases<P>(shapes)) {
        CAPTURE(one.name);
        const Outcome together = run_case(one, backend, {.replicas = replicas});
        for (int s = 0; s < replicas; ++s) {
            const Outcome alone = run_case(one, backend, {.first_replica = s});
            for (const auto& [array, numbers] : together) {
                CAPTURE(array);
                const std::size_t size = numbers.size() / replicas;
                const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(size * static_cast<std::size_t>(s));
                CHECK(
                    same_bits(alone.at(array), std::vector<double>(first, first + static_cast<std::ptrdiff_t>(size))));
            }
        }
    }
}

}  // namespace millrace::test
