// A 64-bit hash that says whether two contents are the same: of weights, of settings, of a design. Not against malice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014) folded over the 32-bit words of the content in order.
inline std::uint64_t content_hash(std::span<const std::byte> bytes) {
    std::uint64_t hash = bytes.size();
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
        std::uint32_t word = 0;
        std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(4, bytes.size() - i));
        hash += 0x9e3779b97f4a7c15 + word;
        hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
        hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
        hash ^= hash >> 31;
    }
    return hash;
}
template <typename Real>
std::uint64_t content_hash(std::span<const Real> numbers) {
    return content_hash(std::as_bytes(numbers));
}
inline std::uint64_t content_hash(std::string_view text) {
    return content_hash(std::as_bytes(std::span(text)));
}

/// 16 hexadecimal digits.
inline std::string hash_text(std::uint64_t hash) {
    std::string text(16, '0');
    for (std::size_t digit = 16; digit-- > 0; hash >>= 4) {
        text[digit] = "0123456789abcdef"[hash & 15];
    }
    return text;
}

}  // namespace millrace
