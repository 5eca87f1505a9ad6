#include "kernels/cuda/matmul_cublaslt.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

namespace millrace {
namespace {

/// NVIDIA's advice for Hopper; what an algorithm wants beyond it, it does not get.
constexpr std::size_t workspace_bytes = 32u << 20;

void check(cublasStatus_t status, const std::string& what) {
    if (status != CUBLAS_STATUS_SUCCESS) {
        throw std::runtime_error("cuBLASLt could not " + what + ": " + cublasLtGetStatusString(status) + ".");
    }
}

std::string shape(const MatmulRecord& r) {
    return "multiply " + std::to_string(r.m) + " x " + std::to_string(r.k) + (r.transpose_a ? "^T" : "") + " by " +
           std::to_string(r.k) + " x " + std::to_string(r.n) + (r.transpose_b ? "^T" : "") + " in a batch of " +
           std::to_string(r.batch);
}

cudaDataType_t data_type(ElementType type) {
    switch (type) {
        case ElementType::bf16:
            return CUDA_R_16BF;
        case ElementType::fp32:
            return CUDA_R_32F;
        case ElementType::fp64:
            break;
    }
    throw std::logic_error("The CUDA backend multiplies no matrices of doubles.");
}

class Layout {
   public:
    Layout(const MatmulMatrix& matrix, int batch) {
        check(cublasLtMatrixLayoutCreate(&layout_, data_type(matrix.type), static_cast<std::uint64_t>(matrix.rows),
                                         static_cast<std::uint64_t>(matrix.columns), matrix.leading),
              "describe a matrix");
        const std::int32_t count = batch;
        const std::int64_t stride = matrix.batch_stride;
        set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
        set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
    }
    ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
    Layout(const Layout&) = delete;
    Layout& operator=(const Layout&) = delete;
    operator cublasLtMatrixLayout_t() const { return layout_; }

   private:
    template <typename Value>
    void set(cublasLtMatrixLayoutAttribute_t attribute, const Value& value) {
        check(cublasLtMatrixLayoutSetAttribute(layout_, attribute, &value, sizeof value), "describe a matrix");
    }
    cublasLtMatrixLayout_t layout_ = nullptr;
};

class Description {
   public:
    explicit Description(const MatmulRecord& record) {
        check(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a product");
        const std::int32_t a = record.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
        const std::int32_t b = record.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
        check(cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a),
              "describe a product");
        check(cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b),
              "describe a product");
    }
    ~Description() { cublasLtMatmulDescDestroy(description_); }
    Description(const Description&) = delete;
    Description& operator=(const Description&) = delete;
    operator cublasLtMatmulDesc_t() const { return description_; }

   private:
    cublasLtMatmulDesc_t description_ = nullptr;
};

class Preference {
   public:
    explicit Preference(const MatmulRecord& record) {
        check(cublasLtMatmulPreferenceCreate(&preference_), "state a preference");
        set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
        // Long sums may be split, but their parts are added up in fp32 and in order, never where they arrive.
        set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, record.a.alignment);
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, record.b.alignment);
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, record.c.alignment);
        set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, record.c.alignment);
    }
    ~Preference() { cublasLtMatmulPreferenceDestroy(preference_); }
    Preference(const Preference&) = delete;
    Preference& operator=(const Preference&) = delete;
    operator cublasLtMatmulPreference_t() const { return preference_; }

   private:
    template <typename Value>
    void set(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
        check(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value), "state a preference");
    }
    cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace

struct CublasLtMatmul::Prepared {
    explicit Prepared(const MatmulRecord& record)
        : description(record), a(record.a, record.batch), b(record.b, record.batch), c(record.c, record.batch) {}

    Description description;
    Layout a;
    Layout b;
    Layout c;
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace = 0;
};

CublasLtMatmul::CublasLtMatmul(cudaStream_t stream) : stream_(stream) {
    check(cublasLtCreate(&handle_), "start");
    if (cudaMalloc(&workspace_, workspace_bytes) != cudaSuccess) {
        cublasLtDestroy(handle_);
        throw std::bad_alloc();
    }
}

CublasLtMatmul::~CublasLtMatmul() {
    prepared_.clear();
    cudaFree(workspace_);
    cublasLtDestroy(handle_);
}

const CublasLtMatmul::Prepared* CublasLtMatmul::prepared(const MatmulRecord& record) {
    const auto known = prepared_.find(record);
    if (known != prepared_.end()) {
        return known->second.get();
    }
    auto fresh = std::make_unique<Prepared>(record);
    const Preference preference(record);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, fresh->description, fresh->a, fresh->b,
                                                                 fresh->c, fresh->c, preference, 1, &best, &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) {
        fresh = nullptr;
    } else {
        check(status, shape(record));
        fresh->algorithm = best.algo;
        fresh->workspace = best.workspaceSize;
    }
    return prepared_.emplace(record, std::move(fresh)).first->second.get();
}

bool CublasLtMatmul::multiply(const MatmulPlan& plan) {
    const Prepared* const product = prepared(plan.record);
    if (product == nullptr) {
        return false;
    }
    const float alpha = 1.0f;
    check(cublasLtMatmul(handle_, product->description, &alpha, plan.a, product->a, plan.b, product->b,
                         &plan.record.beta, plan.c, product->c, plan.c, product->c, &product->algorithm, workspace_,
                         product->workspace, stream_),
          shape(plan.record));
    return true;
}

}  // namespace millrace
