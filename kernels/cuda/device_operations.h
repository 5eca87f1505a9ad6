// All operations of a backend as launches of CUDA kernels on one stream.
//
// A backend is this and its memory: kernels/cuda/cuda_backend.cu on a GPU, the emulated backend in the tests.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/backend.h"
#include "kernels/cuda/generation.cuh"
#include "kernels/cuda/matmul_plan.h"
#include "kernels/cuda/row_kernels.cuh"
#include "kernels/launch.h"
#include "kernels/rows/attention.h"
#include "kernels/rows/classifier.h"
#include "kernels/rows/objective.h"
#include "kernels/rows/relu.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/rows/sample.h"

namespace millrace {

template <typename P>
class DeviceOperations : public Backend<P> {
   public:
    using Real = typename P::Real;

    void run(const EmbeddingForward<P>& op) override {
        rows<EmbeddingForward<P>, embedding_forward_row<WarpTeam, P>>(op, op.extent.rows());
    }

    void run(const EmbeddingBackward<P>& op) override {
        MILLRACE_LAUNCH(token_gradient_kernel<P>, count(op.extent.replicas * op.vocabulary), embedding_block_warps * 32,
                        0, stream_, op);
        rows<EmbeddingBackward<P>, embedding_position_gradient_row<WarpTeam, P>>(op, op.extent.replicas * op.context);
    }

    void run(const RmsNormForward<P>& op) override {
        rows<RmsNormForward<P>, rms_norm_forward_row<WarpTeam, P>>(op, op.extent.rows());
    }

    void run(const RmsNormBackward<P>& op) override {
        rows<RmsNormBackward<P>, rms_norm_backward_part<WarpTeam, P>>(op,
                                                                      op.extent.replicas * rms_norm_parts(op.extent));
        rows<RmsNormBackward<P>, rms_norm_gain_gradient<WarpTeam, P>>(op, op.extent.replicas);
    }

    std::size_t rms_norm_scratch(const Extent& extent, int width) const override {
        return static_cast<std::size_t>(extent.replicas) * static_cast<std::size_t>(rms_norm_parts(extent)) *
               static_cast<std::size_t>(width);
    }

    void run(const AttentionForward<P>& op) override {
        rows<AttentionForward<P>, attention_forward_query<WarpTeam, P>>(op, op.extent.rows() * op.heads);
    }

    void run(const AttentionBackward<P>& op) override {
        rows<AttentionBackward<P>, attention_backward_head<WarpTeam, P>>(
            op, op.extent.replicas * op.extent.sequences * op.heads);
    }

    void run(const FillCache<P>& op) override { rows<FillCache<P>, fill_cache_row<WarpTeam, P>>(op, op.extent.rows()); }

    void run(const AttentionDecode<P>& op) override {
        rows<AttentionDecode<P>, attention_decode_head<WarpTeam, P>>(op, op.extent.rows() * op.heads);
    }

    void run(const ReluForward<P>& op) override { elements<ReluForward<P>, relu_forward_element<P>>(op, op.size); }
    void run(const ReluBackward<P>& op) override { elements<ReluBackward<P>, relu_backward_element<P>>(op, op.size); }
    void run(const ToOperand<P>& op) override { elements<ToOperand<P>, to_operand_element<P>>(op, op.size); }

    void run(const LinearForward<P>& op) override { multiply(matmul_plan(op)); }
    void run(const LinearInputGradient<P>& op) override { multiply(matmul_plan(op)); }
    void run(const LinearWeightGradient<P>& op) override { multiply(matmul_plan(op)); }

    void run(const Classifier<P>& op) override {
        rows<Classifier<P>, classifier_row<WarpTeam, P>>(op, op.extent.rows());
    }

    void run(const Objective<P>& op) override {
        rows<Objective<P>, objective_sequence<WarpTeam, P>>(op, op.extent.replicas * op.extent.sequences);
    }

    void run(const SumParts<P>& op) override { elements<SumParts<P>, sum_parts_element<P>>(op, op.size); }

    void run(const GlobalNorm<P>& op) override {
        rows<GlobalNorm<P>, norm_stretch_squares<WarpTeam, P>>(op, norm_scratch(op.replicas, op.parameters));
        rows<GlobalNorm<P>, norm_of_replica<WarpTeam, P>>(op, op.replicas);
    }

    std::size_t norm_scratch(int replicas, std::size_t parameters) const override {
        return static_cast<std::size_t>(replicas) * norm_stretches(parameters);
    }

    void run(const AdamW<P>& op) override {
        const dim3 grid(blocks(op.parameters, element_block_threads), count(op.replicas));
        if (grid.x != 0 && grid.y != 0) {
            MILLRACE_LAUNCH(adamw_kernel<P>, grid, element_block_threads, 0, stream_, op);
        }
    }

    void run(const Sample<P>& op) override { rows<Sample<P>, sample_sequence<WarpTeam, P>>(op, op.extent.rows()); }

    /// See generation.cuh for the shapes that it takes.
    bool run(const Generate<P>& op) override {
        GenerationLayout layout;
        if (!plan_generation(op, shared_bytes_, layout)) {
            return false;
        }
        if (layout.blocks != 0) {
            MILLRACE_LAUNCH(generation_kernel<P>, layout.blocks, generation_warps * 32, layout.shared_bytes, stream_,
                            op, layout);
        }
        return true;
    }

   protected:
    /// `shared_bytes` is the most shared memory that a block of the device may ask for.
    DeviceOperations(cudaStream_t stream, std::size_t shared_bytes) : stream_(stream), shared_bytes_(shared_bytes) {}

    virtual void multiply(const MatmulPlan& plan) = 0;

    cudaStream_t stream_;

   private:
    static unsigned count(int number) { return static_cast<unsigned>(number); }

    static unsigned blocks(std::size_t units, int units_per_block) {
        const auto per_block = static_cast<std::size_t>(units_per_block);
        return static_cast<unsigned>((units + per_block - 1) / per_block);
    }

    /// Nothing to do is nothing to launch: CUDA refuses a grid of no blocks.
    template <typename Op, auto body, typename Index>
    void rows(const Op& op, Index units) {
        if (units > 0) {
            MILLRACE_LAUNCH((row_kernel<Op, Index, body>), blocks(static_cast<std::size_t>(units), row_block_warps),
                            row_block_threads, 0, stream_, op, units);
        }
    }

    template <typename Op, void (*body)(const Op&, std::size_t)>
    void elements(const Op& op, std::size_t size) {
        if (size > 0) {
            MILLRACE_LAUNCH((element_kernel<Op, body>), blocks(size, element_block_size), element_block_threads, 0,
                            stream_, op, size);
        }
    }

    std::size_t shared_bytes_;
};

}  // namespace millrace
