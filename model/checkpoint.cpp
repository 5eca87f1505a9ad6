#include "model/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>
#include <system_error>

#include "model/weights.h"

namespace millrace {

namespace {

static_assert(std::endian::native == std::endian::little,
              "Checkpoints are little-endian: bytes are copied as they are");

constexpr char magic[8] = {'M', 'L', 'R', 'C', 'H', 'K', 'P', 'T'};
constexpr std::uint32_t format_version = 1;

/// The first bytes of every file, of every version.
struct Prefix {
    char magic[8];
    std::uint32_t version;
    std::uint32_t number_bytes;  ///< sizeof(Real)
    std::uint64_t file_bytes;    ///< of the whole file, the checksum included
};
static_assert(sizeof(Prefix) == 24);

[[noreturn]] void fail(const std::string& path, const std::string& problem) {
    throw std::runtime_error("The checkpoint " + path + " " + problem + ".");
}

std::string system_message() {
    return std::generic_category().message(errno);
}

class Writer {
   public:
    template <typename T>
    void put(const T& value) {
        put_bytes(std::as_bytes(std::span(&value, 1)));
    }
    template <typename T>
    void put_array(const std::vector<T>& array) {
        put(static_cast<std::uint64_t>(array.size()));
        put_bytes(std::as_bytes(std::span(array)));
    }
    std::vector<std::byte>& bytes() { return bytes_; }

   private:
    void put_bytes(std::span<const std::byte> bytes) {
        const std::size_t end = bytes_.size();
        bytes_.resize(end + bytes.size());
        std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(end));
    }

    std::vector<std::byte> bytes_;
};

/// Whoever gets past the checksum holds what Writer wrote, unless somebody forged it: then sizes do not fit.
class Reader {
   public:
    Reader(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

    template <typename T>
    void get(T& value) {
        std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    }
    template <typename T>
    void get_array(std::vector<T>& array) {
        std::uint64_t size = 0;
        get(size);
        if (size > bytes_.size() / sizeof(T)) {
            fail(path_, "contradicts itself: an array is longer than the file");
        }
        array.resize(size);
        const auto bytes = take(size * sizeof(T));
        if (!bytes.empty()) {
            std::memcpy(array.data(), bytes.data(), bytes.size());
        }
    }
    bool at_end() const { return bytes_.empty(); }

   private:
    std::span<const std::byte> take(std::size_t count) {
        if (count > bytes_.size()) {
            fail(path_, "contradicts itself: it ends before it is complete");
        }
        const auto taken = bytes_.first(count);
        bytes_ = bytes_.subspan(count);
        return taken;
    }

    std::span<const std::byte> bytes_;
    const std::string& path_;
};

/// Everything between the prefix and the checksum, in the order of the file; Stream is Writer or Reader.
template <typename Visit, typename VisitArray, typename AnyCheckpoint>
void visit_body(AnyCheckpoint& checkpoint, const Visit& visit, const VisitArray& visit_array) {
    visit(checkpoint.shape.layers);
    visit(checkpoint.shape.width);
    visit(checkpoint.shape.heads);
    visit(checkpoint.shape.mlp_width);
    visit(checkpoint.shape.vocabulary);
    visit(checkpoint.shape.context);
    visit(checkpoint.task.kind);
    visit(checkpoint.task.size);
    visit(checkpoint.theta_0_hash);
    visit(checkpoint.settings_hash);
    visit(checkpoint.counters.updates);
    visit(checkpoint.counters.rollouts);
    visit(checkpoint.replicas);
    visit_array(checkpoint.generated_tokens);
    visit_array(checkpoint.trained_tokens);
    visit_array(checkpoint.weights);
    visit_array(checkpoint.first_moment);
    visit_array(checkpoint.second_moment);
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
        fail(path, "cannot be opened: " + system_message());
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file) {
        fail(path, "cannot be read: " + system_message());
    }
    return bytes;
}

/// Checks everything that can be checked without knowing the body, and returns the body.
std::span<const std::byte> body_of(std::span<const std::byte> file, std::size_t number_bytes, const std::string& path) {
    Prefix prefix;
    if (file.size() < sizeof prefix + sizeof(std::uint64_t)) {
        fail(path, "is no checkpoint of a learner, or only the beginning of one");
    }
    std::memcpy(&prefix, file.data(), sizeof prefix);
    if (std::memcmp(prefix.magic, magic, sizeof magic) != 0) {
        fail(path, "is no checkpoint of a learner");
    }
    if (prefix.version != format_version) {
        fail(path, "has version " + std::to_string(prefix.version) + " of the format; this program reads version " +
                       std::to_string(format_version));
    }
    if (prefix.number_bytes != number_bytes) {
        fail(path, "holds numbers of " + std::to_string(prefix.number_bytes) + " bytes instead of " +
                       std::to_string(number_bytes));
    }
    if (prefix.file_bytes != file.size()) {
        fail(path, "is " + std::string(file.size() < prefix.file_bytes ? "truncated" : "too long") + ": it has " +
                       std::to_string(file.size()) + " bytes and should have " + std::to_string(prefix.file_bytes));
    }
    const auto checked = file.first(file.size() - sizeof(std::uint64_t));
    std::uint64_t checksum = 0;
    std::memcpy(&checksum, file.data() + checked.size(), sizeof checksum);
    if (checksum != content_hash(checked)) {
        fail(path, "is damaged: its checksum is wrong");
    }
    return checked.subspan(sizeof prefix);
}

template <typename Real>
void require_consistent(const Checkpoint<Real>& checkpoint, const std::string& path) {
    try {
        require_valid(checkpoint.shape);
    } catch (const std::invalid_argument& error) {
        fail(path, "holds an impossible model: " + std::string(error.what()));
    }
    const auto replicas = static_cast<std::size_t>(checkpoint.replicas);
    const std::size_t all = replicas * places_of(checkpoint.shape).size;
    const auto fits = [all](std::size_t size) { return size == all || size == 0; };
    if (checkpoint.replicas < 1 || checkpoint.weights.size() != all || !fits(checkpoint.first_moment.size()) ||
        checkpoint.second_moment.size() != checkpoint.first_moment.size() ||
        checkpoint.generated_tokens.size() > replicas || checkpoint.trained_tokens.size() > replicas) {
        fail(path, "contradicts itself: its arrays are not those of " + std::to_string(checkpoint.replicas) +
                       " replicas of a model of " + to_text(checkpoint.shape));
    }
}

}  // namespace

template <typename Real>
void write_checkpoint(const std::string& path, const Checkpoint<Real>& checkpoint) {
    Writer writer;
    Prefix prefix{{}, format_version, sizeof(Real), 0};
    std::memcpy(prefix.magic, magic, sizeof magic);
    writer.put(prefix);
    visit_body(
        checkpoint, [&](const auto& value) { writer.put(value); }, [&](const auto& array) { writer.put_array(array); });
    prefix.file_bytes = writer.bytes().size() + sizeof(std::uint64_t);
    std::memcpy(writer.bytes().data(), &prefix, sizeof prefix);
    writer.put(content_hash(std::span<const std::byte>(writer.bytes())));

    // Nobody else writes under this name. What is renamed lies on the disk: a file whose name survives a loss of power
    // and whose contents do not would replace the older one, which is whole.
    static std::atomic<int> written{0};
    const std::string unfinished = path + ".unfinished-" + std::to_string(getpid()) + "-" + std::to_string(++written);
    if (!write_to_disk(unfinished, writer.bytes()) || std::rename(unfinished.c_str(), path.c_str()) != 0) {
        const std::string problem = "cannot be written: " + system_message();
        std::remove(unfinished.c_str());
        fail(path, problem);
    }
}

template <typename Real>
Checkpoint<Real> read_checkpoint(const std::string& path) {
    const std::vector<std::byte> bytes = bytes_of_file(path);
    Reader reader(body_of(bytes, sizeof(Real), path), path);
    Checkpoint<Real> checkpoint;
    visit_body(
        checkpoint, [&](auto& value) { reader.get(value); }, [&](auto& array) { reader.get_array(array); });
    if (!reader.at_end()) {
        fail(path, "contradicts itself: it goes on after its end");
    }
    require_consistent(checkpoint, path);
    return checkpoint;
}

template void write_checkpoint(const std::string&, const Checkpoint<float>&);
template void write_checkpoint(const std::string&, const Checkpoint<double>&);
template Checkpoint<float> read_checkpoint(const std::string&);
template Checkpoint<double> read_checkpoint(const std::string&);

}  // namespace millrace
