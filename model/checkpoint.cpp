#include "model/checkpoint.h"

#include <stdexcept>

#include "model/checkpoint_fields.h"
#include "model/sealed_file.h"
#include "model/weights.h"

namespace millrace {

namespace {

constexpr SealedFormat format{{'M', 'L', 'R', 'C', 'H', 'K', 'P', 'T'}, 1, "checkpoint of a learner"};

}  // namespace

template <typename Real>
void require_consistent(const Checkpoint<Real>& checkpoint, const std::string& path) {
    try {
        require_valid(checkpoint.shape);
    } catch (const std::invalid_argument& error) {
        fail_checkpoint(path, "holds an impossible model: " + std::string(error.what()));
    }
    const auto replicas = static_cast<std::size_t>(checkpoint.replicas);
    const std::size_t all = replicas * places_of(checkpoint.shape).size;
    const auto fits = [all](std::size_t size) { return size == all || size == 0; };
    if (checkpoint.replicas < 1 || checkpoint.weights.size() != all || !fits(checkpoint.first_moment.size()) ||
        checkpoint.second_moment.size() != checkpoint.first_moment.size() ||
        checkpoint.generated_tokens.size() > replicas || checkpoint.trained_tokens.size() > replicas) {
        fail_checkpoint(path, "contradicts itself: its arrays are not those of " + std::to_string(checkpoint.replicas) +
                                  " replicas of a model of " + to_text(checkpoint.shape));
    }
}

template <typename Real>
void require_theta_0(const Checkpoint<Real>& checkpoint, std::uint64_t theta_0_hash, const std::string& path) {
    if (checkpoint.theta_0_hash != theta_0_hash) {
        throw std::runtime_error("The checkpoint " + path + " started from another theta_0: " +
                                 hash_text(checkpoint.theta_0_hash) + " instead of " + hash_text(theta_0_hash) +
                                 ". It was made with other warm-start settings, or on another kind of processor, which "
                                 "rounds in another way (MILLRACE_CPU_ISA chooses among a CPU's instruction sets).");
    }
}

template <typename Real>
void write_checkpoint(const std::string& path, const Checkpoint<Real>& checkpoint) {
    FieldWriter fields;
    visit_fields(fields, checkpoint);
    write_sealed(path, format, sizeof(Real), fields);
}

template <typename Real>
Checkpoint<Real> read_checkpoint(const std::string& path) {
    const std::vector<std::byte> bytes = read_sealed(path, format, sizeof(Real));
    FieldReader fields(bytes, path);
    Checkpoint<Real> checkpoint;
    visit_fields(fields, checkpoint);
    fields.end();
    require_consistent(checkpoint, path);
    return checkpoint;
}

template void require_consistent(const Checkpoint<float>&, const std::string&);
template void require_consistent(const Checkpoint<double>&, const std::string&);
template void require_theta_0(const Checkpoint<float>&, std::uint64_t, const std::string&);
template void require_theta_0(const Checkpoint<double>&, std::uint64_t, const std::string&);
template void write_checkpoint(const std::string&, const Checkpoint<float>&);
template void write_checkpoint(const std::string&, const Checkpoint<double>&);
template Checkpoint<float> read_checkpoint(const std::string&);
template Checkpoint<double> read_checkpoint(const std::string&);

}  // namespace millrace
