// Every operation by the shared row bodies with a team of one, and matrix products as their definition says.
//
// In double precision this is the reference of the tests. In single precision it is what the CPU backend falls back on
// where it has no body of its own (fast_backend.h).
#pragma once

#include <string>

#include "kernels/cpu/host_backend.h"
#include "kernels/rows/adamw.h"
#include "kernels/rows/attention.h"
#include "kernels/rows/classifier.h"
#include "kernels/rows/embedding.h"
#include "kernels/rows/global_norm.h"
#include "kernels/rows/objective.h"
#include "kernels/rows/relu.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/rows/sample.h"
#include "kernels/team.h"

namespace millrace {

template <typename P>
class PlainBackend : public HostBackend<P> {
   public:
    using Real = typename P::Real;
    using Operand = typename P::Operand;
    using HostBackend<P>::HostBackend;

    void run(const EmbeddingForward<P>& op) override {
        rows(op.extent.rows(), [&](int row) { embedding_forward_row(team, op, row); });
    }
    void run(const EmbeddingBackward<P>& op) override {
        rows(op.extent.replicas * op.vocabulary, [&](int row) { embedding_token_gradient_row(team, op, row); });
        rows(op.extent.replicas * op.context, [&](int row) { embedding_position_gradient_row(team, op, row); });
    }
    void run(const RmsNormForward<P>& op) override {
        rows(op.extent.rows(), [&](int row) { rms_norm_forward_row(team, op, row); });
    }
    void run(const RmsNormBackward<P>& op) override {
        rows(op.extent.replicas * rms_norm_parts(op.extent), [&](int part) { rms_norm_backward_part(team, op, part); });
        rows(op.extent.replicas, [&](int replica) { rms_norm_gain_gradient(team, op, replica); });
    }
    std::size_t rms_norm_scratch(const Extent& extent, int width) const override {
        return static_cast<std::size_t>(extent.replicas) * static_cast<std::size_t>(rms_norm_parts(extent)) *
               static_cast<std::size_t>(width);
    }
    void run(const AttentionForward<P>& op) override {
        rows(op.extent.rows() * op.heads, [&](int query) { attention_forward_query(team, op, query); });
    }
    void run(const AttentionBackward<P>& op) override {
        rows(op.extent.replicas * op.extent.sequences * op.heads,
             [&](int head) { attention_backward_head(team, op, head); });
    }
    void run(const FillCache<P>& op) override {
        rows(op.extent.rows(), [&](int row) { fill_cache_row(team, op, row); });
    }
    void run(const AttentionDecode<P>& op) override {
        rows(op.extent.rows() * op.heads, [&](int head) { attention_decode_head(team, op, head); });
    }
    void run(const ReluForward<P>& op) override {
        for (std::size_t i = 0; i < op.size; ++i) {
            relu_forward_element(op, i);
        }
    }
    void run(const ReluBackward<P>& op) override {
        for (std::size_t i = 0; i < op.size; ++i) {
            relu_backward_element(op, i);
        }
    }
    void run(const LinearForward<P>& op) override {
        each_product(op.extent, op.parameter_stride, op.in, op.out, [&](Product at) {
            for (std::size_t o = 0; o < at.out; ++o) {
                Real sum = Real(0);
                for (std::size_t i = 0; i < at.in; ++i) {
                    sum += load<Real>(op.x[at.row * at.in + i]) * load<Real>(op.weight[at.parameter + o * at.in + i]);
                }
                const std::size_t place = at.row * at.out + o;
                if (op.y != nullptr) {
                    op.y[place] = store<Operand>(sum);
                } else {
                    op.y_real[place] = op.accumulate ? op.y_real[place] + sum : sum;
                }
            }
        });
    }
    void run(const LinearInputGradient<P>& op) override {
        each_product(op.extent, op.parameter_stride, op.in, op.out, [&](Product at) {
            for (std::size_t i = 0; i < at.in; ++i) {
                Real sum = Real(0);
                for (std::size_t o = 0; o < at.out; ++o) {
                    sum += load<Real>(op.dy[at.row * at.out + o]) * load<Real>(op.weight[at.parameter + o * at.in + i]);
                }
                op.dx[at.row * at.in + i] = store<Operand>(sum);
            }
        });
    }
    void run(const LinearWeightGradient<P>& op) override {
        const auto size = static_cast<std::size_t>(op.in) * static_cast<std::size_t>(op.out);
        for (int replica = 0; replica < op.extent.replicas; ++replica) {
            std::fill_n(op.weight_gradient + static_cast<std::size_t>(replica) * op.gradient_stride, size, Real(0));
        }
        each_product(op.extent, op.gradient_stride, op.in, op.out, [&](Product at) {
            for (std::size_t o = 0; o < at.out; ++o) {
                const Real dy = load<Real>(op.dy[at.row * at.out + o]);
                for (std::size_t i = 0; i < at.in; ++i) {
                    op.weight_gradient[at.parameter + o * at.in + i] += dy * load<Real>(op.x[at.row * at.in + i]);
                }
            }
        });
    }
    void run(const ToOperand<P>& op) override {
        for (std::size_t i = 0; i < op.size; ++i) {
            to_operand_element(op, i);
        }
    }
    void run(const Classifier<P>& op) override {
        rows(op.extent.rows(), [&](int row) { classifier_row(team, op, row); });
    }
    void run(const Objective<P>& op) override {
        rows(op.extent.replicas * op.extent.sequences, [&](int sequence) { objective_sequence(team, op, sequence); });
    }
    void run(const SumParts<P>& op) override {
        for (std::size_t i = 0; i < op.size; ++i) {
            sum_parts_element(op, i);
        }
    }
    void run(const GlobalNorm<P>& op) override {
        const std::size_t stretches = norm_scratch(op.replicas, op.parameters);
        for (std::size_t i = 0; i < stretches; ++i) {
            norm_stretch_squares(team, op, i);
        }
        rows(op.replicas, [&](int replica) { norm_of_replica(team, op, replica); });
    }
    std::size_t norm_scratch(int replicas, std::size_t parameters) const override {
        return static_cast<std::size_t>(replicas) * norm_stretches(parameters);
    }
    void run(const AdamW<P>& op) override {
        const AdamWStep<Real> step = *op.step;
        for (int replica = 0; replica < op.replicas; ++replica) {
            const Real clip = clip_factor(op.max_norm > 0 ? op.norm[replica] : Real(0), static_cast<Real>(op.max_norm));
            const std::size_t first = static_cast<std::size_t>(replica) * op.parameters;
            for (std::size_t i = first; i < first + op.parameters; ++i) {
                adamw_element(op, step, clip, i);
            }
        }
    }
    void run(const Sample<P>& op) override {
        rows(op.extent.rows(), [&](int sequence) { sample_sequence(team, op, sequence); });
    }
    bool run(const Generate<P>&) override { return false; }

   protected:
    static constexpr SerialTeam team{};

    template <typename Body>
    static void rows(int count, const Body& body) {
        for (int row = 0; row < count; ++row) {
            body(row);
        }
    }

   private:
    /// One row of a matrix product: `parameter` is the distance of its replica's matrix from that of replica 0.
    struct Product {
        std::size_t row;
        std::size_t parameter;
        std::size_t in;
        std::size_t out;
    };

    template <typename Body>
    static void each_product(const Extent& extent, std::size_t stride, int in, int out, const Body& body) {
        const auto replica_rows = static_cast<std::size_t>(extent.rows_per_replica());
        for (std::size_t row = 0; row < static_cast<std::size_t>(extent.rows()); ++row) {
            body({row, row / replica_rows * stride, static_cast<std::size_t>(in), static_cast<std::size_t>(out)});
        }
    }
};

}  // namespace millrace
