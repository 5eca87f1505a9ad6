// Dense matrix products of one thread: oneDNN in single precision where it was found at configure time, else Eigen.
//
// Measured on Zen 5 with AVX-512 at 64 to 544 rows and widths 32 to 512: oneDNN 2.6 reaches 190 to 220 GFLOP/s, Eigen
// 3.4 120 to 195; at 64 rows and width 32 they are even.
#pragma once

#include <Eigen/Core>

#include "kernels/precision.h"

#if defined(MILLRACE_ONEDNN)
#include <dnnl.h>
#include <omp.h>
#include <stdexcept>
#include <string>
#endif

namespace millrace {

/// Row-major matrices: c = a b, or c += a b, where `a` is [rows][inner] and `b` is [inner][columns], or either of them
/// lies in memory the other way round.
struct ProductShape {
    int rows = 0;
    int columns = 0;
    int inner = 0;
    bool transposed_a = false;
    bool transposed_b = false;
    bool accumulate = false;
};

template <typename Real>
void eigen_product(const ProductShape& shape, const Real* a, const Real* b, Real* c) {
    using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const Matrix> left(a, shape.transposed_a ? shape.inner : shape.rows,
                                        shape.transposed_a ? shape.rows : shape.inner);
    const Eigen::Map<const Matrix> right(b, shape.transposed_b ? shape.columns : shape.inner,
                                         shape.transposed_b ? shape.inner : shape.columns);
    Eigen::Map<Matrix> result(c, shape.rows, shape.columns);
    const auto assign = [&](const auto& product) {
        if (shape.accumulate) {
            result.noalias() += product;
        } else {
            result.noalias() = product;
        }
    };
    if (shape.transposed_a && shape.transposed_b) {
        assign(left.transpose() * right.transpose());
    } else if (shape.transposed_a) {
        assign(left.transpose() * right);
    } else if (shape.transposed_b) {
        assign(left * right.transpose());
    } else {
        assign(left * right);
    }
}

template <typename Real>
void matrix_product(const ProductShape& shape, const Real* a, const Real* b, Real* c) {
#if defined(MILLRACE_ONEDNN)
    if constexpr (std::is_same_v<Real, float>) {
        // Per thread: the learner's threads multiply side by side, and none of them asks for help.
        static thread_local const bool one_thread = (omp_set_num_threads(1), true);
        static_cast<void>(one_thread);
        const dnnl_status_t status = dnnl_sgemm(
            shape.transposed_a ? 'T' : 'N', shape.transposed_b ? 'T' : 'N', shape.rows, shape.columns, shape.inner,
            1.0f, a, shape.transposed_a ? shape.rows : shape.inner, b, shape.transposed_b ? shape.inner : shape.columns,
            shape.accumulate ? 1.0f : 0.0f, c, shape.columns);
        if (status != dnnl_success) {
            throw std::runtime_error("oneDNN cannot multiply matrices: its status is " + std::to_string(status) + ".");
        }
        return;
    }
#endif
    eigen_product(shape, a, b, c);
}

}  // namespace millrace
