#include "tools/millrace/any_backend.h"

#include <stdexcept>

#include "kernels/backends.h"
#include "kernels/cuda/load.h"
#include "kernels/devices.h"

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
    std::string remark;
    if (name == "auto" && !find_cuda_devices().devices.empty()) {
        try {
            return {make_cuda_backend(), ""};
        } catch (const std::runtime_error& error) {
            remark = error.what();
        }
    }
    return {make_cpu_backend(static_cast<int>(threads)), remark};
}

std::string describe(const AnyBackend& backend) {
    return std::visit([](const auto& one) { return name_with_precision(*one); }, backend);
}

}  // namespace millrace
