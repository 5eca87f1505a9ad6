#include "tools/millrace/any_backend.h"

#include "kernels/backends.h"
#include "kernels/cuda/load.h"
#include "kernels/devices.h"
#include "version.h"

namespace millrace {
namespace {

template <typename P>
std::string name_with_precision(Backend<P>& backend) {
    return backend.name() + " (" + P::name + ")";
}

}  // namespace

BackendChoice open_backend(const std::string& name, std::int64_t threads) {
    if (name == "cuda") {
        return {make_cuda_backend(), ""};
    }
    std::string remark = cpu_backend_remark();
    // Until the CUDA kernels have run on hardware, a GPU is used only by those who ask for it.
    if (name == "auto" && !find_cuda_devices().devices.empty()) {
        remark = cuda_built ? "A GPU is there, but the CUDA kernels have not been checked on hardware yet: --backend "
                              "cuda uses it, tools/gpu-check checks it."
                            : "A GPU is there, but this millrace was built without the CUDA Toolkit.";
    }
    return {make_cpu_backend(static_cast<int>(threads)), remark};
}

std::string kind_of(const AnyBackend& backend) {
    std::string text = describe(backend);
    const std::size_t threads = text.find(" thread");
    const std::size_t comma = text.rfind(',', threads);
    if (threads != std::string::npos && comma != std::string::npos) {
        text.erase(comma, text.rfind(" (") - comma);  // any number of them
    }
    return text;
}

std::string describe(const AnyBackend& backend) {
    return std::visit([](const auto& one) { return name_with_precision(*one); }, backend);
}

}  // namespace millrace
