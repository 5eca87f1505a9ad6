#include "tools/millrace/devices_command.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "kernels/backends.h"
#include "kernels/devices.h"
#include "tools/millrace/counted.h"
#include "version.h"

namespace millrace {
namespace {

std::string cpu_model() {
    std::ifstream information("/proc/cpuinfo");
    for (std::string line; std::getline(information, line);) {
        if (line.starts_with("model name")) {
            const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
            return begin == std::string::npos ? "unknown" : line.substr(begin);
        }
    }
    return "unknown";
}

}  // namespace

std::string devices_report() {
    std::ostringstream text;
    const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    text << "CPU: " << cpu_model() << ", " << counted(std::int64_t{threads}, "thread") << "\n";
    try {
        const std::string name = make_cpu_backend(1)->name();
        text << "     the learner runs on " << name << " (--jobs takes more)\n";
        if (const std::string remark = cpu_backend_remark(); !remark.empty()) {
            text << "     not with all that this CPU can do: " << remark << "\n";
        }
    } catch (const std::runtime_error& error) {
        text << "     " << error.what() << "\n";
    }
    const CudaDevices found = find_cuda_devices();
    if (found.devices.empty()) {
        text << "GPU: none. " << found.why_none << "\n";
    }
    for (const CudaDevice& device : found.devices) {
        text << "GPU " << device.index << ": " << device.name << ", " << (device.memory_bytes >> 20) << " MiB, compute "
             << "capability " << device.capability_major << "." << device.capability_minor << "\n";
    }
    if (found.driver_version > 0) {
        text << "     the driver speaks CUDA " << found.driver_version / 1000 << "." << found.driver_version % 1000 / 10
             << "\n";
    }
    text << "     CUDA kernels: " << (cuda_built ? "built" : "not built into this millrace") << "\n";
    return text.str();
}

}  // namespace millrace
