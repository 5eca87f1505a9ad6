// One AdamW step (Loshchilov, Hutter 2019) by ascent. Unit of a team: one parameter.
#pragma once

#include "kernels/math.h"
#include "kernels/ops.h"

namespace millrace {

/// The factor that brings a gradient of length `norm` down to `max_norm`, 1 where it is not longer.
template <class Real>
MILLRACE_HOST_DEVICE Real clip_factor(Real norm, Real max_norm) {
    return max_norm > Real(0) && norm > max_norm ? max_norm / norm : Real(1);
}

/// `i` counts the parameters of all replicas.
template <class P>
MILLRACE_HOST_DEVICE void adamw_element(const AdamW<P>& op, const AdamWStep<typename P::Real>& step,
                                        typename P::Real clip, std::size_t i) {
    using Real = typename P::Real;
    const auto beta1 = static_cast<Real>(op.beta1);
    const auto beta2 = static_cast<Real>(op.beta2);
    const Real gradient = op.gradient[i] * clip;
    const Real first = beta1 * op.first[i] + static_cast<Real>(1.0 - op.beta1) * gradient;
    const Real second = beta2 * op.second[i] + static_cast<Real>(1.0 - op.beta2) * gradient * gradient;
    const Real direction =
        first * step.first_correction / (sqrt_of(second * step.second_correction) + static_cast<Real>(op.epsilon));
    const Real weight = op.weight[i];
    const Real moved = weight + step.learning_rate * (direction - static_cast<Real>(op.weight_decay) * weight);
    op.first[i] = first;
    op.second[i] = second;
    op.weight[i] = moved;
    if (op.operand != nullptr) {
        op.operand[i] = store<typename P::Operand>(moved);
    }
}

}  // namespace millrace
