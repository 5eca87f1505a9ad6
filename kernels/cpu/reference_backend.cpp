#include "kernels/backends.h"
#include "kernels/cpu/plain_backend.h"

namespace millrace {

std::unique_ptr<Backend<Float64>> make_reference_backend(int threads) {
    return std::make_unique<PlainBackend<Float64>>("CPU reference, double precision", threads);
}

}  // namespace millrace
