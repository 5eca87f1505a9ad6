#include "model/sealed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "model/weights.h"

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little,
              "Checkpoints are little-endian: bytes are copied as they are");

/// The first bytes of every file, of every version.
struct Prefix {
    char magic[8];
    std::uint32_t version;
    std::uint32_t number_bytes;  ///< sizeof(Real)
    std::uint64_t file_bytes;    ///< of the whole file, the checksum included
};
static_assert(sizeof(Prefix) == 24);

std::string system_message() {
    return std::generic_category().message(errno);
}

/// False, with the reason in errno, when not all could be written.
bool write_to_disk(const std::string& path, std::span<const std::byte> bytes) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        return false;
    }
    while (!bytes.empty()) {
        const ssize_t count = write(file, bytes.data(), bytes.size());
        if (count < 0 && errno != EINTR) {
            break;
        }
        bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    const bool whole = bytes.empty() && fsync(file) == 0;
    const int problem = errno;
    const bool closed = close(file) == 0;
    if (!whole) {
        errno = problem;
    }
    return whole && closed;
}

std::vector<std::byte> bytes_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) {
        fail_checkpoint(path, "cannot be opened: " + system_message());
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file) {
        fail_checkpoint(path, "cannot be read: " + system_message());
    }
    return bytes;
}

}  // namespace

void fail_checkpoint(const std::string& path, const std::string& problem) {
    throw std::runtime_error("The checkpoint " + path + " " + problem + ".");
}

std::size_t FieldReader::length(std::size_t element_bytes) {
    std::uint64_t size = 0;
    (*this)(size);
    if (size > bytes_.size() / element_bytes) {
        fail_checkpoint(path_, "contradicts itself: an array is longer than the file");
    }
    return size;
}

std::span<const std::byte> FieldReader::take(std::size_t count) {
    if (count > bytes_.size()) {
        fail_checkpoint(path_, "contradicts itself: it ends before it is complete");
    }
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
}

void FieldReader::end() const {
    if (!bytes_.empty()) {
        fail_checkpoint(path_, "contradicts itself: it goes on after its end");
    }
}

void write_sealed(const std::string& path, const SealedFormat& format, std::size_t number_bytes,
                  const FieldWriter& contents) {
    Prefix prefix{{}, format.version, static_cast<std::uint32_t>(number_bytes), 0};
    std::memcpy(prefix.magic, format.magic, sizeof prefix.magic);
    prefix.file_bytes = sizeof prefix + contents.bytes().size() + sizeof(std::uint64_t);
    std::vector<std::byte> bytes;
    bytes.reserve(prefix.file_bytes);
    const auto append = [&](std::span<const std::byte> some) { bytes.insert(bytes.end(), some.begin(), some.end()); };
    append(std::as_bytes(std::span(&prefix, 1)));
    append(contents.bytes());
    const std::uint64_t checksum = content_hash(std::span<const std::byte>(bytes));
    append(std::as_bytes(std::span(&checksum, 1)));

    // Nobody else writes under this name. What is renamed lies on the disk: a file whose name survives a loss of power
    // and whose contents do not would replace the older one, which is whole.
    static std::atomic<int> written{0};
    const std::string unfinished = path + ".unfinished-" + std::to_string(getpid()) + "-" + std::to_string(++written);
    if (!write_to_disk(unfinished, bytes) || std::rename(unfinished.c_str(), path.c_str()) != 0) {
        const std::string problem = "cannot be written: " + system_message();
        std::remove(unfinished.c_str());
        fail_checkpoint(path, problem);
    }
}

std::vector<std::byte> read_sealed(const std::string& path, const SealedFormat& format, std::size_t number_bytes) {
    std::vector<std::byte> file = bytes_of_file(path);
    const std::string no_such_kind = std::string("is no ") + format.name;
    Prefix prefix;
    if (file.size() < sizeof prefix + sizeof(std::uint64_t)) {
        fail_checkpoint(path, no_such_kind + ", or only the beginning of one");
    }
    std::memcpy(&prefix, file.data(), sizeof prefix);
    if (std::memcmp(prefix.magic, format.magic, sizeof prefix.magic) != 0) {
        fail_checkpoint(path, no_such_kind);
    }
    if (prefix.version != format.version) {
        fail_checkpoint(path, "has version " + std::to_string(prefix.version) +
                                  " of the format; this program reads version " + std::to_string(format.version));
    }
    if (prefix.number_bytes != number_bytes) {
        fail_checkpoint(path, "holds numbers of " + std::to_string(prefix.number_bytes) + " bytes instead of " +
                                  std::to_string(number_bytes));
    }
    if (prefix.file_bytes != file.size()) {
        fail_checkpoint(path, "is " + std::string(file.size() < prefix.file_bytes ? "truncated" : "too long") +
                                  ": it has " + std::to_string(file.size()) + " bytes and should have " +
                                  std::to_string(prefix.file_bytes));
    }
    const auto checked = std::span<const std::byte>(file).first(file.size() - sizeof(std::uint64_t));
    std::uint64_t checksum = 0;
    std::memcpy(&checksum, file.data() + checked.size(), sizeof checksum);
    if (checksum != content_hash(checked)) {
        fail_checkpoint(path, "is damaged: its checksum is wrong");
    }
    file.resize(checked.size());
    file.erase(file.begin(), file.begin() + sizeof prefix);
    return file;
}

}  // namespace millrace
