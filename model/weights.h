// Policy versions: the parameters of all replicas after some update, kept as long as somebody needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/backend.h"
#include "model/backend_array.h"
#include "model/shape.h"
#include "sim/engine/content_hash.h"  // what identifies weights

namespace millrace {

/// S replicas of P numbers, [S][P], in a backend's memory, with the rounded copy that matrix products read where that
/// is another type.
template <typename P>
class Weights {
   public:
    using Real = typename P::Real;
    using Operand = typename P::Operand;

    /// All zero.
    Weights(Backend<P>& backend, const ModelShape& shape, int replicas);

    const ModelShape& shape() const { return shape_; }
    const ParameterPlaces& places() const { return places_; }
    int replicas() const { return replicas_; }
    std::size_t parameters() const { return places_.size; }  ///< P, gaps included
    std::int64_t version() const { return version_; }        ///< number of updates that made these weights
    void set_version(std::int64_t version) { version_ = version; }

    Real* reals() { return reals_.data(); }
    const Real* reals() const { return reals_.data(); }
    /// The matrices to multiply with; the weights themselves where both types are one.
    const Operand* operands() const;
    /// Where an optimizer writes the rounded copy; null where there is none.
    Operand* rounded() { return rounded_.data(); }

    /// [S][P], or [P] for all replicas alike. Throws std::invalid_argument at any other size.
    void upload(std::span<const Real> weights);
    std::vector<Real> download() const { return reals_.download(); }
    void copy_from(const Weights& other);

   private:
    Backend<P>* backend_;
    ModelShape shape_;
    ParameterPlaces places_;
    int replicas_;
    std::int64_t version_ = 0;
    BackendArray<P, Real> reals_;
    BackendArray<P, Operand> rounded_;
};

/// Makes policy versions. The memory of a version that nobody holds any more serves a later one, so that a backend sees
/// the same few addresses again and again and the memory in use is that of the versions in use.
template <typename P>
class WeightsPool {
   public:
    WeightsPool(Backend<P>& backend, const ModelShape& shape, int replicas);

    /// A copy of `weights`. It may outlive the pool, but not the backend.
    std::shared_ptr<const Weights<P>> copy_of(const Weights<P>& weights);

    /// Copies in use or waiting to be used again.
    std::size_t allocated() const;

   private:
    struct Idle {
        std::mutex mutex;
        std::vector<std::unique_ptr<Weights<P>>> weights;
        std::size_t allocated = 0;
    };

    Backend<P>* backend_;
    ModelShape shape_;
    int replicas_;
    std::shared_ptr<Idle> idle_ = std::make_shared<Idle>();
};

}  // namespace millrace
