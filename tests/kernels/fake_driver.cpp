// A libcuda.so.1 that claims whatever GPUs the environment variable MILLRACE_FAKE_GPUS names, for the tests of what
// asks the driver: "driver version;name,major,minor;name,major,minor...". Nothing can be computed with it.
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int success = 0;
constexpr int invalid_value = 1;
constexpr int not_initialized = 3;
constexpr int no_device = 100;

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        parts.push_back(part);
    }
    return parts;
}

std::vector<std::string> claims() {
    const char* text = std::getenv("MILLRACE_FAKE_GPUS");
    return split(text == nullptr ? "0" : text, ';');
}

std::string field(int device, std::size_t number) {
    return split(claims().at(static_cast<std::size_t>(device) + 1), ',').at(number);
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
    const int devices = static_cast<int>(claims().size()) - 1;
    return claims().front() == "broken" ? not_initialized : devices > 0 ? success : no_device;
}

int cuDriverGetVersion(int* version) {
    *version = std::atoi(claims().front().c_str());
    return success;
}

int cuDeviceGetCount(int* count) {
    *count = static_cast<int>(claims().size()) - 1;
    return success;
}

int cuDeviceGet(int* device, int index) {
    *device = index;
    return success;
}

int cuDeviceGetName(char* name, int size, int device) {
    std::strncpy(name, field(device, 0).c_str(), static_cast<std::size_t>(size));
    return success;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
    *bytes = (static_cast<std::size_t>(device) + 1) << 34;
    return success;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
    if (attribute != 75 && attribute != 76) {  // the compute capability's two numbers
        return invalid_value;
    }
    *value = std::atoi(field(device, attribute == 75 ? 1 : 2).c_str());
    return success;
}

}  // extern "C"
