// Products of few rows with a matrix that is used many times, as generation has them: y = x W^T.
//
// Floor: in * out fused multiply-adds a row, 2 vectors of them a cycle. W is laid out in panels once; a tile of rows
// and two vectors of columns then stays in registers. oneDNN reaches half of that floor at 64 rows of width 32, because
// it lays out W in every call.
#pragma once

#include <algorithm>

#include "kernels/cpu/vector.h"

namespace millrace {

enum class ProductEnd {
    store,
    store_positive,  ///< ReLU
    add,             ///< y += x W^T
};

template <typename Real>
struct PackedMatrix {
    static constexpr int lanes = native_lanes<Real>;
    static constexpr int panel = 2 * lanes;
    static constexpr int most_rows = vector_bytes == 64 ? 8 : 4;  ///< of a tile: what the registers hold

    int in = 0;
    int out = 0;
    const Real* panels = nullptr;  ///< [out / panel][in][panel], zeros behind `out`

    static std::size_t size(int in, int out) {
        return static_cast<std::size_t>((out + panel - 1) / panel * panel) * static_cast<std::size_t>(in);
    }

    /// `weight` is [out][in]; `memory` has size(in, out) numbers.
    PackedMatrix(const Real* weight, int inputs, int outputs, Real* memory) : in(inputs), out(outputs), panels(memory) {
        for (int first = 0; first < out; first += panel) {
            for (int o = first; o < first + panel; ++o) {
                const Real* row = weight + static_cast<std::size_t>(o) * static_cast<std::size_t>(in);
                Real* column = memory + static_cast<std::size_t>(first) * static_cast<std::size_t>(in) + (o - first);
                for (int i = 0; i < in; ++i) {
                    column[static_cast<std::size_t>(i) * panel] = o < out ? row[i] : Real(0);
                }
            }
        }
    }

    template <ProductEnd End>
    void multiply(const Real* x, int rows, Real* y) const {
        int row = 0;
        for (; row + most_rows <= rows; row += most_rows) {
            rows_of_tiles<most_rows, End>(x, row, y);
        }
        if constexpr (most_rows > 4) {
            for (; row + 4 <= rows; row += 4) {
                rows_of_tiles<4, End>(x, row, y);
            }
        }
        for (; row < rows; ++row) {
            rows_of_tiles<1, End>(x, row, y);
        }
    }

   private:
    template <int M, ProductEnd End>
    void rows_of_tiles(const Real* x, int row, Real* y) const {
        x += static_cast<std::size_t>(row) * static_cast<std::size_t>(in);
        y += static_cast<std::size_t>(row) * static_cast<std::size_t>(out);
        for (int first = 0; first < out; first += panel) {
            tile<M, End>(x, panels + static_cast<std::size_t>(first) * static_cast<std::size_t>(in), y + first,
                         std::min(panel, out - first));
        }
    }

    template <int M, ProductEnd End>
    void tile(const Real* __restrict x, const Real* __restrict weights, Real* __restrict y, int columns) const {
        using V = Vector<Real, lanes>;
        V low[M] = {};
        V high[M] = {};
        for (int i = 0; i < in; ++i) {
            const V w_low = load_vector<lanes>(weights + static_cast<std::size_t>(i) * panel);
            const V w_high = load_vector<lanes>(weights + static_cast<std::size_t>(i) * panel + lanes);
#pragma GCC unroll 8
            for (int m = 0; m < M; ++m) {
                const Real factor =
                    x[static_cast<std::size_t>(m) * static_cast<std::size_t>(in) + static_cast<std::size_t>(i)];
                low[m] += factor * w_low;
                high[m] += factor * w_high;
            }
        }
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
            Real* row = y + static_cast<std::size_t>(m) * static_cast<std::size_t>(out);
            if (columns == panel) {
                finish<End>(row, low[m]);
                finish<End>(row + lanes, high[m]);
            } else {
                Real numbers[panel];
                store_vector(numbers, low[m]);
                store_vector(numbers + lanes, high[m]);
                for (int o = 0; o < columns; ++o) {
                    if constexpr (End == ProductEnd::add) {
                        row[o] += numbers[o];
                    } else {
                        row[o] = End == ProductEnd::store_positive && !(numbers[o] > Real(0)) ? Real(0) : numbers[o];
                    }
                }
            }
        }
    }

    template <ProductEnd End>
    static void finish(Real* y, Vector<Real, lanes> sum) {
        if constexpr (End == ProductEnd::add) {
            sum += load_vector<lanes>(y);
        } else if constexpr (End == ProductEnd::store_positive) {
            sum = sum > Real(0) ? sum : Vector<Real, lanes>{};
        }
        store_vector(y, sum);
    }
};

}  // namespace millrace
