// The CPU backend proper: where a row body shared with GPUs does not become good vector code, it has its own here.
//
// It is a template over the precision so that the tests can put the very same code before central differences in
// double. It is compiled once per instruction set.
#pragma once

#include "kernels/cpu/attention_body.h"
#include "kernels/cpu/generation_body.h"
#include "kernels/cpu/matrix_product.h"
#include "kernels/cpu/plain_backend.h"
#include "kernels/cpu/softmax_body.h"

namespace millrace {

template <typename P>
class FastBackend final : public PlainBackend<P> {
   public:
    using Real = typename P::Real;
    using PlainBackend<P>::PlainBackend;
    using PlainBackend<P>::run;

    void run(const LinearForward<P>& op) override {
        const ProductShape shape{op.extent.rows_per_replica(), op.out, op.in, false, true, op.accumulate};
        Real* y = op.y != nullptr ? op.y : op.y_real;
        for (std::size_t replica = 0; replica < static_cast<std::size_t>(op.extent.replicas); ++replica) {
            matrix_product(shape, op.x + replica * rows(op) * in(op), op.weight + replica * op.parameter_stride,
                           y + replica * rows(op) * out(op));
        }
    }
    void run(const LinearInputGradient<P>& op) override {
        const ProductShape shape{op.extent.rows_per_replica(), op.in, op.out, false, false, false};
        for (std::size_t replica = 0; replica < static_cast<std::size_t>(op.extent.replicas); ++replica) {
            matrix_product(shape, op.dy + replica * rows(op) * out(op), op.weight + replica * op.parameter_stride,
                           op.dx + replica * rows(op) * in(op));
        }
    }
    void run(const LinearWeightGradient<P>& op) override {
        const ProductShape shape{op.out, op.in, op.extent.rows_per_replica(), true, false, false};
        for (std::size_t replica = 0; replica < static_cast<std::size_t>(op.extent.replicas); ++replica) {
            matrix_product(shape, op.dy + replica * rows(op) * out(op), op.x + replica * rows(op) * in(op),
                           op.weight_gradient + replica * op.gradient_stride);
        }
    }
    void run(const AttentionForward<P>& op) override {
        const bool done = in_vectors_of(op.width / op.heads, [&](auto n) {
            each(op.extent.replicas * op.extent.sequences * op.heads,
                 [&](int head) { attention_forward_head<n.value>(op, head); });
        });
        if (!done) {
            PlainBackend<P>::run(op);
        }
    }
    void run(const AttentionBackward<P>& op) override {
        const bool done = in_vectors_of(op.width / op.heads, [&](auto n) {
            each(op.extent.replicas * op.extent.sequences * op.heads,
                 [&](int head) { attention_backward_head<n.value>(op, head); });
        });
        if (!done) {
            PlainBackend<P>::run(op);
        }
    }
    void run(const AttentionDecode<P>& op) override {
        const bool done = in_vectors_of(op.width / op.heads, [&](auto n) {
            const int heads = op.extent.rows() * op.heads;
            for (int first = 0; first < heads; first += decode_group) {
                attention_decode_heads<n.value>(op, first, std::min(heads, first + decode_group));
            }
        });
        if (!done) {
            PlainBackend<P>::run(op);
        }
    }
    void run(const Classifier<P>& op) override {
        if (op.vocabulary > PaddedRow<Real>::most) {
            PlainBackend<P>::run(op);
            return;
        }
        each(op.extent.rows(), [&](int row) { classifier_row_in_vectors(op, row); });
    }
    void run(const Sample<P>& op) override {
        if (op.vocabulary > PaddedRow<Real>::most) {
            PlainBackend<P>::run(op);
            return;
        }
        each(op.extent.rows(), [&](int sequence) { sample_in_vectors(op, sequence); });
    }
    /// The same sums as the shared body, a stretch at a time: one pass over each part.
    void run(const SumParts<P>& op) override {
        constexpr std::size_t stretch = 2048;
        for (std::size_t first = 0; first < op.size; first += stretch) {
            const std::size_t count = std::min(stretch, op.size - first);
            Real* __restrict sum = op.sum + first;
            std::copy_n(op.part + first, count, sum);
            for (std::size_t part = 1; part < static_cast<std::size_t>(op.parts); ++part) {
                const Real* __restrict more = op.part + part * op.part_stride + first;
                for (std::size_t i = 0; i < count; ++i) {
                    sum[i] += more[i];
                }
            }
        }
    }
    bool run(const Generate<P>& op) override {
        return op.vocabulary <= PaddedRow<Real>::most &&
               in_vectors_of(op.width / op.heads, [&](auto n) { GenerationOnCore<n.value, P>(op).run(); });
    }

   private:
    template <typename Body>
    static void each(int count, const Body& body) {
        for (int i = 0; i < count; ++i) {
            body(i);
        }
    }

    /// Calls `body` with the longest vector length, at least 2, that divides the head width. Returns whether there is.
    template <typename Body>
    static bool in_vectors_of(int head_width, const Body& body) {
        return try_length(std::integral_constant<int, native_lanes<Real>>{}, head_width, body);
    }
    template <int N, typename Body>
    static bool try_length(std::integral_constant<int, N> n, int head_width, const Body& body) {
        if (head_width % N == 0) {
            body(n);
            return true;
        }
        if constexpr (N > 2) {
            return try_length(std::integral_constant<int, N / 2>{}, head_width, body);
        } else {
            return false;
        }
    }

    template <typename Op>
    static std::size_t rows(const Op& op) {
        return static_cast<std::size_t>(op.extent.rows_per_replica());
    }
    template <typename Op>
    static std::size_t in(const Op& op) {
        return static_cast<std::size_t>(op.in);
    }
    template <typename Op>
    static std::size_t out(const Op& op) {
        return static_cast<std::size_t>(op.out);
    }
};

}  // namespace millrace
