// Files of numbers that are whole or not there: what checkpoints are written to.
//
// A file is, in little-endian order: eight letters that say what it is, the format's version, the size of a number, the
// size of the file, the contents, and a checksum of all bytes before it. It is written to the disk under a name of its
// own and then renamed, so that a file of the right name is always complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace {

/// A kind of file.
struct SealedFormat {
    char magic[8];
    std::uint32_t version;
    const char* name;  ///< "checkpoint of a learner"
};

/// Throws std::runtime_error: "The checkpoint PATH PROBLEM."
[[noreturn]] void fail_checkpoint(const std::string& path, const std::string& problem);

/// Takes what is to be written. Called with a value, or a list of values; FieldReader, called with the same ones in the
/// same order, gives them back, so that one function can describe the contents for both.
class FieldWriter {
   public:
    template <typename T>
    void operator()(const T& value) {
        static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
        put(std::as_bytes(std::span(&value, 1)));
    }
    template <typename T>
    void operator()(const std::vector<T>& array) {
        list(array);
        put(std::as_bytes(std::span(array)));
    }
    void operator()(const std::string& text) {
        list(text);
        put(std::as_bytes(std::span(text)));
    }
    template <typename T>
    void operator()(const std::optional<T>& value) {
        (*this)(value.has_value());
        (*this)(value.value_or(T{}));
    }
    /// The length of a list whose elements follow.
    template <typename List>
    void list(const List& list) {
        (*this)(static_cast<std::uint64_t>(list.size()));
    }

    std::span<const std::byte> bytes() const { return bytes_; }

   private:
    void put(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

    std::vector<std::byte> bytes_;
};

/// Whoever gets past the checksum holds what a FieldWriter wrote, unless somebody forged it: then sizes do not fit.
class FieldReader {
   public:
    /// `path` is for messages.
    FieldReader(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

    template <typename T>
    void operator()(T& value) {
        static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
        std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    }
    template <typename T>
    void operator()(std::vector<T>& array) {
        fill(array);
    }
    void operator()(std::string& text) { fill(text); }
    template <typename T>
    void operator()(std::optional<T>& value) {
        bool there = false;
        T number{};
        (*this)(there);
        (*this)(number);
        value = there ? std::optional<T>(number) : std::nullopt;
    }
    template <typename List>
    void list(List& list) {
        list.resize(length(1));
    }

    /// Throws when something is left.
    void end() const;

   private:
    template <typename Array>
    void fill(Array& array) {
        using T = typename Array::value_type;
        array.resize(length(sizeof(T)));
        const auto bytes = take(array.size() * sizeof(T));
        if (!bytes.empty()) {
            std::memcpy(array.data(), bytes.data(), bytes.size());
        }
    }
    std::size_t length(std::size_t element_bytes);
    std::span<const std::byte> take(std::size_t count);

    std::span<const std::byte> bytes_;
    std::string path_;
};

/// Throws std::runtime_error when the file cannot be written; an older file of that name is then still there.
void write_sealed(const std::string& path, const SealedFormat& format, std::size_t number_bytes,
                  const FieldWriter& contents);

/// The contents. Throws std::runtime_error, saying what is wrong, when there is no such file, it is of another kind, of
/// another version of the format or another number type, shorter or longer than it says, or damaged.
std::vector<std::byte> read_sealed(const std::string& path, const SealedFormat& format, std::size_t number_bytes);

}  // namespace millrace
