// The backend on an NVIDIA GPU: one stream, and everything that the learner repeats recorded as a CUDA graph.
//
// A training step of the small model is some fifty short kernels. Launched one by one, each of them waits for the host;
// replayed from a graph they follow each other without it.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <stdexcept>
#include <string>

#include "kernels/cuda/device_operations.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/matmul_cublaslt.h"
#include "kernels/cuda/matmul_plain.cuh"

namespace millrace {
namespace {

void check(cudaError_t status, const char* what) {
    if (status == cudaErrorMemoryAllocation) {
        throw std::bad_alloc();
    }
    if (status != cudaSuccess) {
        throw std::runtime_error(std::string("CUDA could not ") + what + ": " + cudaGetErrorString(status) + ".");
    }
}

/// The stream of device `device`, made the current one of this thread.
class Stream {
   public:
    explicit Stream(int device) {
        check(cudaSetDevice(device), "use the GPU");
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream");
    }
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    cudaStream_t get() const { return stream_; }

   private:
    cudaStream_t stream_ = nullptr;
};

/// Page-locked memory that small uploads pass through, so that the caller need not wait for the device and may change
/// its own memory at once.
class Staging {
   public:
    explicit Staging(cudaStream_t stream) : stream_(stream) {
        check(cudaMallocHost(&memory_, size), "lock memory of the host");
    }
    ~Staging() { cudaFreeHost(memory_); }
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    static constexpr std::size_t size = std::size_t{4} << 20;

    void upload(void* destination, const void* host, std::size_t bytes) {
        if (bytes > size) {
            check(cudaMemcpyAsync(destination, host, bytes, cudaMemcpyHostToDevice, stream_), "upload");
            check(cudaStreamSynchronize(stream_), "upload");
            return;
        }
        if (used_ + bytes > size) {
            check(cudaStreamSynchronize(stream_), "upload");
            used_ = 0;
        }
        char* const place = static_cast<char*>(memory_) + used_;
        std::memcpy(place, host, bytes);
        check(cudaMemcpyAsync(destination, place, bytes, cudaMemcpyHostToDevice, stream_), "upload");
        used_ += (bytes + 63) / 64 * 64;
    }

    /// The stream has been waited for: everything has passed through.
    void empty() { used_ = 0; }

   private:
    cudaStream_t stream_;
    void* memory_ = nullptr;
    std::size_t used_ = 0;
};

struct DestroyGraph {
    using pointer = cudaGraphExec_t;
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using GraphExec = std::unique_ptr<cudaGraphExec_t, DestroyGraph>;

cudaDeviceProp properties(int device) {
    cudaDeviceProp found{};
    check(cudaGetDeviceProperties(&found, device), "describe the GPU");
    return found;
}

class CudaBackend final : public DeviceOperations<Mixed> {
   public:
    explicit CudaBackend(int device) : CudaBackend(device, std::make_unique<Stream>(device), properties(device)) {}

    ~CudaBackend() override {
        cudaSetDevice(device_);
        cudaStreamSynchronize(stream_);
    }

    std::string name() const override { return name_; }

    void* allocate(std::size_t bytes) override {
        use();
        void* memory = nullptr;
        check(cudaMalloc(&memory, bytes == 0 ? 1 : bytes), "allocate memory");
        return memory;
    }

    void release(void* memory) noexcept override {
        // The records may name this memory. None is destroyed before the device has finished with it.
        cudaSetDevice(device_);
        cudaStreamSynchronize(stream_);
        records_.clear();
        cudaFree(memory);
    }

    void upload(void* destination, const void* host, std::size_t bytes) override {
        use();
        not_while_recording("upload");
        staging_.upload(destination, host, bytes);
    }

    void download(void* host, const void* source, std::size_t bytes) override {
        use();
        not_while_recording("download");
        check(cudaMemcpyAsync(host, source, bytes, cudaMemcpyDeviceToHost, stream_), "download");
        check(cudaStreamSynchronize(stream_), "download");
        staging_.empty();
    }

    void copy(void* destination, const void* source, std::size_t bytes) override {
        use();
        check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToDevice, stream_), "copy memory");
    }

    void clear(void* destination, std::size_t bytes) override {
        use();
        check(cudaMemsetAsync(destination, 0, bytes, stream_), "clear memory");
    }

    int lanes() const override { return 1; }

    void parallel(int tasks, const std::function<void(int, int)>& task) override {
        for (int i = 0; i < tasks; ++i) {
            task(i, 0);
        }
    }

    std::size_t tokens_per_task() const override { return std::size_t{1} << 30; }

    void repeatable(std::uint64_t key, const std::function<void()>& work) override {
        use();
        if (recording_) {
            work();  // already part of a record
            return;
        }
        Record& record = records_[key];
        if (record.graph == nullptr) {
            if (!record.seen) {
                // The first time for real: it loads the kernels and looks for the algorithms of matrix products, which
                // must not happen while a graph is recorded.
                work();
                records_[key].seen = true;
                return;
            }
            record.graph = recorded(work);
        }
        check(cudaGraphLaunch(record.graph.get(), stream_), "replay a record");
    }

   private:
    struct Record {
        bool seen = false;
        GraphExec graph;
    };

    CudaBackend(int device, std::unique_ptr<Stream> stream, const cudaDeviceProp& found)
        : DeviceOperations<Mixed>(stream->get(), found.sharedMemPerBlockOptin),
          device_(device),
          name_(found.name),
          own_stream_(std::move(stream)),
          staging_(stream_),
          matmul_(stream_) {}

    void multiply(const MatmulPlan& plan) override {
        if (!matmul_.multiply(plan)) {
            multiply_plainly<Mixed>(plan, stream_);
        }
    }

    /// The current device belongs to the calling thread, which may not be the one that made the backend.
    void use() const { check(cudaSetDevice(device_), "use the GPU"); }

    void not_while_recording(const char* what) const {
        if (recording_) {
            throw std::logic_error(std::string("Repeatable work may not ") + what + ".");
        }
    }

    GraphExec recorded(const std::function<void()>& work) {
        check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "start recording");
        recording_ = true;
        std::exception_ptr failure;
        try {
            work();
        } catch (...) {
            failure = std::current_exception();
        }
        recording_ = false;
        cudaGraph_t graph = nullptr;
        const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
        cudaGraphExec_t executable = nullptr;
        const cudaError_t made = ended == cudaSuccess && !failure ? cudaGraphInstantiate(&executable, graph, 0) : ended;
        if (graph != nullptr) {
            cudaGraphDestroy(graph);
        }
        if (failure) {
            std::rethrow_exception(failure);
        }
        check(made, "record work");
        return GraphExec(executable);
    }

    int device_;
    std::string name_;
    std::unique_ptr<Stream> own_stream_;
    Staging staging_;
    CublasLtMatmul matmul_;
    std::map<std::uint64_t, Record> records_;
    bool recording_ = false;
};

void write_text(char* text, std::size_t size, const char* message) {
    if (size > 0) {
        std::snprintf(text, size, "%s", message);
    }
}

}  // namespace
}  // namespace millrace

#define MILLRACE_EXPORT extern "C" __attribute__((visibility("default")))

MILLRACE_EXPORT const char* millrace_cuda_interface() {
    return MILLRACE_CUDA_INTERFACE;
}

MILLRACE_EXPORT millrace::Backend<millrace::Mixed>* millrace_cuda_make_backend(int device, char* error,
                                                                               std::size_t error_size) {
    try {
        return new millrace::CudaBackend(device);
    } catch (const std::bad_alloc&) {
        millrace::write_text(error, error_size, "The GPU has too little free memory.");
    } catch (const std::exception& failure) {
        millrace::write_text(error, error_size, failure.what());
    }
    return nullptr;
}
