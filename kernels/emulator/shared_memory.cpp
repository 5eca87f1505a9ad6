#include "kernels/emulator/shared_memory.h"

#include <cstdint>
#include <cstring>
#include <string>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace millrace::emulator {

namespace {

// Of compute capability 9.0, and how launch.h asks for more than every block gets: by the dynamic memory alone.
constexpr std::size_t granted_to_all = 48 * 1024;
constexpr std::size_t most_bytes = 227 * 1024;

// A row of 256 floats past either end still lands in a guard zone.
constexpr std::size_t guard_bytes = 1024;

// As float, double, bfloat16 or half: memory never written and memory of nobody are both NaN, but different ones, so
// that a NaN written to a guard zone is found.
constexpr int unwritten_byte = 0xff;
constexpr std::uint8_t guard_pattern[2] = {0xc5, 0xff};

void fill_guard(std::byte* guard) {
    for (std::size_t i = 0; i < guard_bytes; ++i) {
        guard[i] = static_cast<std::byte>(guard_pattern[i % 2]);
    }
}

bool is_intact(const std::byte* guard) {
    for (std::size_t i = 0; i < guard_bytes; ++i) {
        if (guard[i] != static_cast<std::byte>(guard_pattern[i % 2])) {
            return false;
        }
    }
    return true;
}

}  // namespace

SharedMemory::SharedMemory(const Launch& launch) : launch_(launch) {
    if (launch.shared_bytes > most_bytes) {
        throw EmulationError(
            "Kernel " + std::string(launch.kernel) + " is launched with " + std::to_string(launch.shared_bytes) +
            " bytes of dynamic shared memory; a block has at most " + std::to_string(most_bytes) + ".");
    }
    regions_.emplace_back(nullptr, "the dynamic shared memory", launch.shared_bytes, std::size_t{16});
}

void SharedMemory::start_block() {
    for (Region& region : regions_) {
        region.poison();
    }
}

void SharedMemory::check_guards(uint3 block) {
    for (const Region& region : regions_) {
        if (!region.guards_are_intact()) {
            throw EmulationError(describe_block(launch_, block) + ": a thread wrote before the beginning or past the " +
                                 "end of " + region.name + ", which has " + std::to_string(region.bytes) + " bytes.");
        }
    }
}

void* SharedMemory::dynamic() {
    return regions_.front().data();
}

void* SharedMemory::variable(const void* key, const char* name, std::size_t bytes, std::size_t alignment) {
    for (const Region& region : regions_) {
        if (region.key == key) {
            return region.data();
        }
    }
    static_bytes_ += bytes;
    const std::size_t all_bytes = static_bytes_ + launch_.shared_bytes;
    const std::size_t limit = launch_.shared_bytes > granted_to_all ? most_bytes : granted_to_all;
    if (static_bytes_ > granted_to_all || all_bytes > limit) {
        throw EmulationError("Kernel " + std::string(launch_.kernel) + " declares " + std::to_string(static_bytes_) +
                             " bytes of shared variables and is launched with " + std::to_string(launch_.shared_bytes) +
                             " bytes of dynamic shared memory; variables have at most " +
                             std::to_string(granted_to_all) + ", and both together " + std::to_string(limit) + ".");
    }
    return regions_.emplace_back(key, name, bytes, alignment).data();
}

SharedMemory::Region::Region(const void* key_, const char* name_, std::size_t bytes_, std::size_t alignment)
    : key(key_), name(name_), bytes(bytes_) {
    std::size_t room = guard_bytes + bytes + guard_bytes + alignment;
    storage_ = std::make_unique<std::byte[]>(room);
    void* start = storage_.get() + guard_bytes;
    room -= guard_bytes;
    data_ = static_cast<std::byte*>(std::align(alignment, bytes, start, room));
    poison();
}

SharedMemory::Region::~Region() {
    if (storage_) {
        allow_guards(true);
    }
}

void SharedMemory::Region::poison() {
    allow_guards(true);
    fill_guard(data_ - guard_bytes);
    std::memset(data_, unwritten_byte, bytes);
    fill_guard(data_ + bytes);
    allow_guards(false);
}

bool SharedMemory::Region::guards_are_intact() const {
    allow_guards(true);
    const bool intact = is_intact(data_ - guard_bytes) && is_intact(data_ + bytes);
    allow_guards(false);
    return intact;
}

/// With AddressSanitizer, touching a guard zone, even to read it, is reported at the very line.
void SharedMemory::Region::allow_guards([[maybe_unused]] bool allow) const {
#if defined(__SANITIZE_ADDRESS__)
    for (const std::byte* guard : {data_ - guard_bytes, data_ + bytes}) {
        if (allow) {
            ASAN_UNPOISON_MEMORY_REGION(guard, guard_bytes);
        } else {
            ASAN_POISON_MEMORY_REGION(guard, guard_bytes);
        }
    }
#endif
}

}  // namespace millrace::emulator
