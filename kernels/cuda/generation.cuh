// Generation in one kernel: every block takes some sequences through all layers and all steps.
//
// Step by step, every token takes some twenty launches for very little work. Here a warp takes one sequence from the
// end of its prompt to its own end and meets no other warp on the way: the weights are in shared memory (60 kB in bf16
// for the default model), the residual stream, the keys and the values too. Numbers are rounded to operands where the
// separate operations round them, so both ways differ by the order of sums alone.
#pragma once

#include "kernels/cuda/generation_layout.h"
#include "kernels/cuda/generation_warp.cuh"
#include "kernels/launch.h"

namespace millrace {

/// Which sequences of its replica a block has: consecutive ones, so that the copies of a prompt stay together.
struct GenerationShare {
    int replica = 0;
    int first = 0;
    int count = 0;
};

template <typename P>
__device__ GenerationShare generation_share(const Generate<P>& op, const GenerationLayout& layout) {
    const int blocks_per_replica = static_cast<int>(layout.blocks) / op.replicas;
    const int replica = static_cast<int>(blockIdx.x) / blocks_per_replica;
    const int block = static_cast<int>(blockIdx.x) - replica * blocks_per_replica;
    int first = 0;
    int end = 0;
    if (layout.blocks_per_prompt > 1 || layout.prompts_per_block == 1) {
        const int prompt = block / layout.blocks_per_prompt;
        first = prompt * op.copies + (block - prompt * layout.blocks_per_prompt) * generation_warps;
        end = (prompt + 1) * op.copies;
    } else {
        first = block * layout.prompts_per_block * op.copies;
        end = first + layout.prompts_per_block * op.copies;
    }
    const int sequences = op.prompts * op.copies;
    end = end < sequences ? end : sequences;
    end = end < first + generation_warps ? end : first + generation_warps;
    return {replica, first, end - first};
}

template <typename P>
__global__ void __launch_bounds__(generation_warps * 32)
    generation_kernel(const Generate<P> op, const GenerationLayout layout) {
    using Real = typename P::Real;
    MILLRACE_DYNAMIC_SHARED(unsigned char, shared);
    const GenerationShare share = generation_share(op, layout);
    const GenerationWarp<P> work(op, layout, shared, share.replica);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (layout.weights_shared) {
        work.load_weights();
    }
    __syncthreads();

    // The prompts: a warp per token and a barrier per layer, after which all keys and values of the layer are there.
    // Keys and values go to the caches of all copies of the prompt; of the last layer only the last token needs more.
    const int first_prompt = share.first / op.copies;
    const int prompts = (share.first + share.count - 1) / op.copies - first_prompt + 1;
    const int rows = prompts * op.prompt_tokens;
    const auto first_slot = [&](int prompt) {
        const int slot = (first_prompt + prompt) * op.copies - share.first;
        return slot > 0 ? slot : 0;
    };
    const auto end_slot = [&](int prompt) {
        const int slot = (first_prompt + prompt + 1) * op.copies - share.first;
        return slot < share.count ? slot : share.count;
    };
    for (int row = warp; row < rows; row += generation_warps) {
        const int prompt = row / op.prompt_tokens;
        work.embed(share.first + first_slot(prompt), row - prompt * op.prompt_tokens, work.residual(row));
    }
    for (int layer = 0; layer < op.layers; ++layer) {
        for (int row = warp; row < rows; row += generation_warps) {
            const int prompt = row / op.prompt_tokens;
            work.project(layer, work.residual(row), work.queries(row), row - prompt * op.prompt_tokens,
                         first_slot(prompt), end_slot(prompt), share.first);
        }
        __syncthreads();
        for (int row = warp; row < rows; row += generation_warps) {
            const int prompt = row / op.prompt_tokens;
            const int t = row - prompt * op.prompt_tokens;
            if (layer + 1 < op.layers || t + 1 == op.prompt_tokens) {
                work.attend_and_mlp(layer, work.residual(row), work.queries(row), first_slot(prompt),
                                    share.first + first_slot(prompt), t + 1);
            }
        }
    }
    for (int row = warp; row < rows; row += generation_warps) {
        const int prompt = row / op.prompt_tokens;
        if (row - prompt * op.prompt_tokens + 1 == op.prompt_tokens) {
            work.classify(work.residual(row), work.logits(first_slot(prompt)));
            work.share_logits(first_slot(prompt), end_slot(prompt));
        }
    }
    __syncthreads();

    // The answers: every warp its own sequence.
    if (warp >= share.count) {
        return;
    }
    const int sequence = share.first + warp;
    Real* const x = work.residual(warp);
    for (int position = op.prompt_tokens;; ++position) {
        if (work.sample(sequence, position, work.logits(warp))) {
            work.pad(sequence, position + 1);
            return;
        }
        if (position + 1 == op.context) {
            return;
        }
        work.embed(sequence, position, x);
        for (int layer = 0; layer < op.layers; ++layer) {
            work.project(layer, x, work.queries(warp), position, warp, warp + 1, share.first);
            work.attend_and_mlp(layer, x, work.queries(warp), warp, sequence, position + 1);
        }
        work.classify(x, work.logits(warp));
    }
}

}  // namespace millrace
