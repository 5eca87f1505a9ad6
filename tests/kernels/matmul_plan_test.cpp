// The column-major records for cuBLASLt, carried out by an interpreter, are the row-major products of ops.h.
#include "kernels/cuda/matmul_plan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/random.h"
#include "tests/kernels/matmul_interpreter.h"

namespace millrace {
namespace {

/// Small whole numbers, so that products and their sums are exact in every type, bf16 included.
class Numbers {
   public:
    explicit Numbers(std::uint64_t seed) : seed_(seed) {}
    int between(int low, int high) {
        const std::uint32_t bits = learner_bits(seed_, LearnerPurpose::test, ++draw_).word[0];
        return low + static_cast<int>(bits % static_cast<std::uint32_t>(high - low + 1));
    }

   private:
    std::uint64_t seed_;
    std::uint64_t draw_ = 0;
};

template <typename Number>
std::vector<Number> random_matrix(Numbers& random, std::size_t size) {
    std::vector<Number> matrix(size);
    for (Number& number : matrix) {
        number = store<Number>(static_cast<double>(random.between(-2, 2)));
    }
    return matrix;
}

template <typename Number>
double at(const std::vector<Number>& matrix, std::size_t place) {
    return load<double>(matrix[place]);
}

/// Products of one random shape: S replicas whose weights and gradients lie further apart than they are long.
template <typename P>
struct Shape {
    using Real = typename P::Real;
    using Operand = typename P::Operand;

    explicit Shape(Numbers& random)
        : extent{random.between(1, 4), random.between(1, 3), random.between(1, 5)},
          in(random.between(1, 9)),
          out(random.between(1, 9)),
          rows(static_cast<std::size_t>(extent.rows_per_replica())),
          n_in(static_cast<std::size_t>(in)),
          n_out(static_cast<std::size_t>(out)),
          replicas(static_cast<std::size_t>(extent.replicas)),
          stride(n_in * n_out + static_cast<std::size_t>(random.between(0, 7))),
          x(random_matrix<Operand>(random, replicas * rows * n_in)),
          dy(random_matrix<Operand>(random, replicas * rows * n_out)),
          weight(random_matrix<Operand>(random, replicas * stride)) {}

    double x_at(std::size_t s, std::size_t row, std::size_t i) const { return at(x, (s * rows + row) * n_in + i); }
    double dy_at(std::size_t s, std::size_t row, std::size_t o) const { return at(dy, (s * rows + row) * n_out + o); }
    double weight_at(std::size_t s, std::size_t o, std::size_t i) const {
        return at(weight, s * stride + o * n_in + i);
    }

    Extent extent;
    int in, out;
    std::size_t rows, n_in, n_out, replicas, stride;
    std::vector<Operand> x, dy, weight;
};

template <typename Number>
std::vector<Number> poison(std::size_t size) {
    return std::vector<Number>(size, store<Number>(std::numeric_limits<double>::quiet_NaN()));
}

template <typename P>
void forward_is_x_times_transposed_weight(std::uint64_t seed) {
    Numbers random(seed);
    const Shape<P> shape(random);
    const std::vector<typename P::Real> before = random_matrix<typename P::Real>(random, shape.dy.size());
    auto y = poison<typename P::Operand>(shape.dy.size());
    auto y_real = poison<typename P::Real>(shape.dy.size());
    auto y_added = before;
    LinearForward<P> product{.extent = shape.extent,
                             .in = shape.in,
                             .out = shape.out,
                             .x = shape.x.data(),
                             .weight = shape.weight.data(),
                             .parameter_stride = shape.stride,
                             .y = y.data()};
    test::execute(matmul_plan(product));
    product.y = nullptr;
    product.y_real = y_real.data();
    test::execute(matmul_plan(product));
    product.y_real = y_added.data();
    product.accumulate = true;
    test::execute(matmul_plan(product));

    for (std::size_t s = 0; s < shape.replicas; ++s) {
        for (std::size_t row = 0; row < shape.rows; ++row) {
            for (std::size_t o = 0; o < shape.n_out; ++o) {
                double sum = 0.0;
                for (std::size_t i = 0; i < shape.n_in; ++i) {
                    sum += shape.x_at(s, row, i) * shape.weight_at(s, o, i);
                }
                const std::size_t place = (s * shape.rows + row) * shape.n_out + o;
                REQUIRE(at(y, place) == sum);
                REQUIRE(at(y_real, place) == sum);
                REQUIRE(at(y_added, place) == at(before, place) + sum);
            }
        }
    }
}

template <typename P>
void input_gradient_is_dy_times_weight(std::uint64_t seed) {
    Numbers random(seed);
    const Shape<P> shape(random);
    auto dx = poison<typename P::Operand>(shape.x.size());
    test::execute(matmul_plan(LinearInputGradient<P>{.extent = shape.extent,
                                                     .in = shape.in,
                                                     .out = shape.out,
                                                     .dy = shape.dy.data(),
                                                     .weight = shape.weight.data(),
                                                     .parameter_stride = shape.stride,
                                                     .dx = dx.data()}));
    for (std::size_t s = 0; s < shape.replicas; ++s) {
        for (std::size_t row = 0; row < shape.rows; ++row) {
            for (std::size_t i = 0; i < shape.n_in; ++i) {
                double sum = 0.0;
                for (std::size_t o = 0; o < shape.n_out; ++o) {
                    sum += shape.dy_at(s, row, o) * shape.weight_at(s, o, i);
                }
                REQUIRE(at(dx, (s * shape.rows + row) * shape.n_in + i) == sum);
            }
        }
    }
}

template <typename P>
void weight_gradient_is_transposed_dy_times_x(std::uint64_t seed) {
    Numbers random(seed);
    const Shape<P> shape(random);
    auto gradient = poison<typename P::Real>(shape.replicas * shape.stride);
    test::execute(matmul_plan(LinearWeightGradient<P>{.extent = shape.extent,
                                                      .in = shape.in,
                                                      .out = shape.out,
                                                      .dy = shape.dy.data(),
                                                      .x = shape.x.data(),
                                                      .weight_gradient = gradient.data(),
                                                      .gradient_stride = shape.stride}));
    for (std::size_t s = 0; s < shape.replicas; ++s) {
        for (std::size_t o = 0; o < shape.n_out; ++o) {
            for (std::size_t i = 0; i < shape.n_in; ++i) {
                double sum = 0.0;
                for (std::size_t row = 0; row < shape.rows; ++row) {
                    sum += shape.dy_at(s, row, o) * shape.x_at(s, row, i);
                }
                REQUIRE(at(gradient, s * shape.stride + o * shape.n_in + i) == sum);
            }
        }
        for (std::size_t beyond = shape.n_in * shape.n_out; beyond < shape.stride; ++beyond) {
            REQUIRE(std::isnan(at(gradient, s * shape.stride + beyond)));  // not this matrix: left alone
        }
    }
}

template <typename P>
void all_products() {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        forward_is_x_times_transposed_weight<P>(seed);
        input_gradient_is_dy_times_weight<P>(seed);
        weight_gradient_is_transposed_dy_times_x<P>(seed);
    }
}

TEST_CASE("records of matrix products are the row-major products, for random shapes, replicas and strides") {
    all_products<Mixed>();
    all_products<Float32>();
    all_products<Float64>();
}

TEST_CASE("a record knows the alignment of its worst batch entry, by which cuBLASLt chooses") {
    alignas(256) static Bf16 memory[4096];
    LinearForward<Mixed> product{.extent = {2, 4, 1},
                                 .in = 32,
                                 .out = 20,
                                 .x = memory,
                                 .weight = memory + 1024,
                                 .parameter_stride = 648,
                                 .y = memory + 3000};
    const MatmulRecord batched = matmul_plan(product).record;
    CHECK(batched.a.alignment == 16);  // entry 1 lies 648 numbers of 2 bytes further: 1296 = 16 * 81
    CHECK(batched.b.alignment == 256);
    CHECK(batched.c.alignment == 16);  // 6000 = 16 * 375 bytes, and 80 numbers between entries: 160 bytes
    product.extent.replicas = 1;
    const MatmulRecord single = matmul_plan(product).record;
    CHECK(single.a.alignment == 256);
    CHECK(single.a.batch_stride == 0);  // of no meaning, so it must not tell two equal plans apart
}

}  // namespace
}  // namespace millrace
