// Carries out a MatmulRecord on the CPU, as cuBLASLt documents it: column-major, one loop per index.
#pragma once

#include <cstddef>
#include <stdexcept>

#include "kernels/cuda/matmul_plan.h"

namespace millrace::test {

inline double element(const void* matrix, const MatmulMatrix& layout, int batch, int i, int j) {
    if (i < 0 || i >= layout.rows || j < 0 || j >= layout.columns || layout.leading < layout.rows) {
        throw std::out_of_range("a matrix product reads outside its matrix");
    }
    const auto place =
        static_cast<std::ptrdiff_t>(batch) * layout.batch_stride + i + static_cast<std::ptrdiff_t>(j) * layout.leading;
    switch (layout.type) {
        case ElementType::bf16:
            return static_cast<double>(to_float(static_cast<const Bf16*>(matrix)[place]));
        case ElementType::fp32:
            return static_cast<double>(static_cast<const float*>(matrix)[place]);
        case ElementType::fp64:
            break;
    }
    return static_cast<const double*>(matrix)[place];
}

inline void set_element(void* matrix, const MatmulMatrix& layout, int batch, int i, int j, double value) {
    element(matrix, layout, batch, i, j);  // is it inside?
    const auto place =
        static_cast<std::ptrdiff_t>(batch) * layout.batch_stride + i + static_cast<std::ptrdiff_t>(j) * layout.leading;
    switch (layout.type) {
        case ElementType::bf16:
            static_cast<Bf16*>(matrix)[place] = to_bf16(static_cast<float>(value));
            return;
        case ElementType::fp32:
            static_cast<float*>(matrix)[place] = static_cast<float>(value);
            return;
        case ElementType::fp64:
            static_cast<double*>(matrix)[place] = value;
            return;
    }
}

inline void execute(const MatmulPlan& plan) {
    const MatmulRecord& r = plan.record;
    const bool exact = r.c.type == ElementType::fp64;
    for (int batch = 0; batch < r.batch; ++batch) {
        for (int j = 0; j < r.n; ++j) {
            for (int i = 0; i < r.m; ++i) {
                double sum = 0.0;
                for (int l = 0; l < r.k; ++l) {
                    const double a =
                        r.transpose_a ? element(plan.a, r.a, batch, l, i) : element(plan.a, r.a, batch, i, l);
                    const double b =
                        r.transpose_b ? element(plan.b, r.b, batch, j, l) : element(plan.b, r.b, batch, l, j);
                    sum = exact ? sum + a * b : static_cast<double>(static_cast<float>(sum + a * b));
                }
                if (r.beta != 0.0f) {  // cuBLASLt does not read C either where beta is 0
                    sum += static_cast<double>(r.beta) * element(plan.c, r.c, batch, i, j);
                }
                set_element(plan.c, r.c, batch, i, j, sum);
            }
        }
    }
}

}  // namespace millrace::test
