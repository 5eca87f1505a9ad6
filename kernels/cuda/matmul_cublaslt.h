// Matrix products by cuBLASLt: bf16 operands on the tensor cores, sums in fp32, results in fp32 or bf16.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>

#include "kernels/cuda/matmul_plan.h"

namespace millrace {

/// Looks for the algorithm of a product once per record and keeps it, so that the same product always runs the same
/// way and costs the host little. Descriptors and workspace exist before the product is launched, hence
/// a product whose record is known can be captured into a graph.
class CublasLtMatmul {
   public:
    /// Throws std::runtime_error when cuBLASLt refuses. All products go to `stream` and share the workspace.
    explicit CublasLtMatmul(cudaStream_t stream);
    ~CublasLtMatmul();
    CublasLtMatmul(const CublasLtMatmul&) = delete;
    CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

    /// False if cuBLASLt has no algorithm for the record: then nothing has been launched.
    bool multiply(const MatmulPlan& plan);

   private:
    struct Prepared;
    const Prepared* prepared(const MatmulRecord& record);

    cudaStream_t stream_;
    cublasLtHandle_t handle_ = nullptr;
    void* workspace_ = nullptr;
    std::map<MatmulRecord, std::unique_ptr<Prepared>> prepared_;  ///< null where there is no algorithm
};

}  // namespace millrace
