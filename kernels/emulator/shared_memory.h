// The shared memory of a block: each variable between two guard zones, everything NaN until it is written.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/emulator/block.h"

namespace millrace::emulator {

class SharedMemory {
   public:
    explicit SharedMemory(const Launch& launch);

    /// For the next block of the same launch: all variables as if never written.
    void start_block();

    /// Throws EmulationError if the block wrote to a guard zone.
    void check_guards(uint3 block);

    void* dynamic();
    void* variable(const void* key, const char* name, std::size_t bytes, std::size_t alignment);

   private:
    class Region {
       public:
        Region(const void* key, const char* name, std::size_t bytes, std::size_t alignment);
        Region(Region&&) = default;
        ~Region();

        void poison();
        bool guards_are_intact() const;
        std::byte* data() const { return data_; }

        const void* key;
        const char* name;
        std::size_t bytes;

       private:
        void allow_guards(bool allow) const;

        std::unique_ptr<std::byte[]> storage_;
        std::byte* data_;
    };

    Launch launch_;
    std::size_t static_bytes_ = 0;
    std::vector<Region> regions_;  // the first is the dynamic memory
};

}  // namespace millrace::emulator
