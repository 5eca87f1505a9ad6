// The interface to where the numbers are computed: a CPU core's caches or a GPU.
//
// The learner (model/) is written once against this. A backend owns memory and runs the operations of ops.h on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "kernels/ops.h"

namespace millrace {

template <typename P>
struct Generate;  // kernels/generate.h

template <typename P>
class Backend {
   public:
    virtual ~Backend() = default;

    /// For people: "CPU x86-64-v4, 2 threads", "NVIDIA H200".
    virtual std::string name() const = 0;

    // ---- memory ---------------------------------------------------------------------------------------------------

    /// At least `bytes` of the backend's memory, aligned to 64 bytes, with unspecified contents. Throws std::bad_alloc.
    virtual void* allocate(std::size_t bytes) = 0;
    virtual void release(void* memory) noexcept = 0;
    virtual void upload(void* destination, const void* host, std::size_t bytes) = 0;
    /// Waits until everything asked for before is done.
    virtual void download(void* host, const void* source, std::size_t bytes) = 0;
    virtual void copy(void* destination, const void* source, std::size_t bytes) = 0;
    virtual void clear(void* destination, std::size_t bytes) = 0;

    // ---- how work is divided ----------------------------------------------------------------------------------------

    /// How many tasks run side by side. Each needs its own workspace.
    virtual int lanes() const = 0;
    /// Runs task(0, lane), ..., task(tasks - 1, lane), no two at a time in one lane, and waits for all; lanes are below
    /// min(tasks, lanes()). Exceptions of tasks come out. What a task computes must not depend on its lane.
    virtual void parallel(int tasks, const std::function<void(int task, int lane)>& task) = 0;
    /// The number of tokens that one task should hold: what fits a core's cache, or everything on a GPU. It never
    /// depends on lanes(), because sums are made per task and then added up.
    virtual std::size_t tokens_per_task() const = 0;
    /// Runs `work`, which must do the same operations on the same addresses whenever `key` is the same: a GPU records
    /// it the first time and replays the record from then on. A record is forgotten when any memory is released.
    virtual void repeatable(std::uint64_t key, const std::function<void()>& work) = 0;

    // ---- operations -------------------------------------------------------------------------------------------------

    virtual void run(const EmbeddingForward<P>&) = 0;
    virtual void run(const EmbeddingBackward<P>&) = 0;
    virtual void run(const RmsNormForward<P>&) = 0;
    virtual void run(const RmsNormBackward<P>&) = 0;
    virtual std::size_t rms_norm_scratch(const Extent& extent, int width) const = 0;
    virtual void run(const AttentionForward<P>&) = 0;
    virtual void run(const AttentionBackward<P>&) = 0;
    virtual void run(const FillCache<P>&) = 0;
    virtual void run(const AttentionDecode<P>&) = 0;
    virtual void run(const ReluForward<P>&) = 0;
    virtual void run(const ReluBackward<P>&) = 0;
    virtual void run(const LinearForward<P>&) = 0;
    virtual void run(const LinearInputGradient<P>&) = 0;
    virtual void run(const LinearWeightGradient<P>&) = 0;
    virtual void run(const ToOperand<P>&) = 0;
    virtual void run(const Classifier<P>&) = 0;
    virtual void run(const Objective<P>&) = 0;
    virtual void run(const SumParts<P>&) = 0;
    virtual void run(const GlobalNorm<P>&) = 0;
    virtual std::size_t norm_scratch(int replicas, std::size_t parameters) const = 0;
    virtual void run(const AdamW<P>&) = 0;
    virtual void run(const Sample<P>&) = 0;
    /// All layers and steps of a generation at once. Returns false where there is no such kernel, or not for this
    /// shape; the caller then generates step by step with the operations above.
    virtual bool run(const Generate<P>&) = 0;
};

}  // namespace millrace
