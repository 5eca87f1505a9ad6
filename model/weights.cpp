#include "model/weights.h"

#include <array>
#include <stdexcept>

namespace millrace {

namespace {

template <typename P>
constexpr bool has_rounded_copy = !std::is_same_v<typename P::Real, typename P::Operand>;

}  // namespace

template <typename P>
Weights<P>::Weights(Backend<P>& backend, const ModelShape& shape, int replicas)
    : backend_(&backend),
      shape_(shape),
      places_(places_of(shape)),
      replicas_(replicas),
      reals_(backend, static_cast<std::size_t>(replicas) * places_.size),
      rounded_(backend, has_rounded_copy<P> ? reals_.size() : 0) {}

template <typename P>
const typename P::Operand* Weights<P>::operands() const {
    if constexpr (has_rounded_copy<P>) {
        return rounded_.data();
    } else {
        return reals_.data();
    }
}

template <typename P>
void Weights<P>::upload(std::span<const Real> weights) {
    if (weights.size() != reals_.size() && weights.size() != places_.size) {
        throw std::invalid_argument("Weights of " + std::to_string(replicas_) + " replicas of " +
                                    std::to_string(places_.size) + " numbers cannot be made of " +
                                    std::to_string(weights.size()) + " numbers.");
    }
    std::vector<Real> all(weights.begin(), weights.end());
    while (all.size() < reals_.size()) {
        all.insert(all.end(), weights.begin(), weights.end());
    }
    reals_.upload(all);
    if constexpr (has_rounded_copy<P>) {
        std::vector<Operand> rounded(all.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
            rounded[i] = store<Operand>(all[i]);
        }
        rounded_.upload(rounded);
    }
}

template <typename P>
void Weights<P>::copy_from(const Weights& other) {
    if (other.shape_ != shape_ || other.replicas_ != replicas_) {
        throw std::invalid_argument("Weights of another shape cannot be copied: " + to_text(other.shape_) + ".");
    }
    backend_->copy(reals_.data(), other.reals_.data(), reals_.size() * sizeof(Real));
    if constexpr (has_rounded_copy<P>) {
        backend_->copy(rounded_.data(), other.rounded_.data(), rounded_.size() * sizeof(Operand));
    }
    version_ = other.version_;
}

template <typename P>
WeightsPool<P>::WeightsPool(Backend<P>& backend, const ModelShape& shape, int replicas)
    : backend_(&backend), shape_(shape), replicas_(replicas) {}

template <typename P>
std::shared_ptr<const Weights<P>> WeightsPool<P>::copy_of(const Weights<P>& weights) {
    std::unique_ptr<Weights<P>> copy;
    {
        const std::lock_guard lock(idle_->mutex);
        if (idle_->weights.empty()) {
            ++idle_->allocated;
        } else {
            copy = std::move(idle_->weights.back());
            idle_->weights.pop_back();
        }
    }
    if (!copy) {
        copy = std::make_unique<Weights<P>>(*backend_, shape_, replicas_);
    }
    copy->copy_from(weights);
    return {copy.release(), [idle = idle_](const Weights<P>* done) {
                const std::lock_guard lock(idle->mutex);
                idle->weights.emplace_back(const_cast<Weights<P>*>(done));
            }};
}

template <typename P>
std::size_t WeightsPool<P>::allocated() const {
    const std::lock_guard lock(idle_->mutex);
    return idle_->allocated;
}

template class Weights<Float32>;
template class Weights<Float64>;
template class Weights<Mixed>;
template class WeightsPool<Float32>;
template class WeightsPool<Float64>;
template class WeightsPool<Mixed>;

}  // namespace millrace
