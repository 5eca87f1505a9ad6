// Checkpoint files: everything that training needs to go on as if it had never stopped, or only the weights.
// sealed_file.h says how they lie on the disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/shape.h"

namespace millrace {

/// How far a learner has come.
struct LearnerCounters {
    std::int64_t updates = 0;
    std::int64_t rollouts = 0;  ///< the next one's id, which addresses its prompt and its random numbers
    bool operator==(const LearnerCounters&) const = default;
};

/// Real is float, or double in tests.
template <typename Real>
struct Checkpoint {
    ModelShape shape;
    TaskSettings task;
    std::uint64_t theta_0_hash = 0;   ///< content_hash of the weights at update 0
    std::uint64_t settings_hash = 0;  ///< whoever resumes says what must agree; 0 for weights alone
    LearnerCounters counters;
    std::int32_t replicas = 1;                   ///< S
    std::vector<std::int64_t> generated_tokens;  ///< [S]
    std::vector<std::int64_t> trained_tokens;    ///< [S]
    std::vector<Real> weights;                   ///< [S][places_of(shape).size]
    std::vector<Real> first_moment;              ///< of AdamW, [S][size]; empty for weights alone
    std::vector<Real> second_moment;
};

/// Throws std::runtime_error when the file cannot be written; an older file of that name is then still there.
template <typename Real>
void write_checkpoint(const std::string& path, const Checkpoint<Real>& checkpoint);

/// Throws std::runtime_error, saying what is wrong, when there is no such file, it is not a checkpoint, of another
/// version of the format or another number type, shorter or longer than it says, or damaged.
template <typename Real>
Checkpoint<Real> read_checkpoint(const std::string& path);

/// Throws std::runtime_error when the checkpoint in file `path` started from another theta_0.
template <typename Real>
void require_theta_0(const Checkpoint<Real>& checkpoint, std::uint64_t theta_0_hash, const std::string& path);

}  // namespace millrace
