// Sum of gradient parts and Euclidean norm of each replica's gradient. Unit of a team: one element of the sum; for the
// norm a stretch of numbers, and then the stretches of a replica.
#pragma once

#include "kernels/math.h"
#include "kernels/ops.h"

namespace millrace {

template <class P>
MILLRACE_HOST_DEVICE void sum_parts_element(const SumParts<P>& op, std::size_t i) {
    typename P::Real sum = op.part[i];
    for (int part = 1; part < op.parts; ++part) {
        sum += op.part[static_cast<std::size_t>(part) * op.part_stride + i];
    }
    op.sum[i] = sum;
}

/// Numbers whose squares are added up by one team.
inline constexpr std::size_t norm_stretch = 1024;

/// Stretches of one replica; `scratch` is [S][stretches].
MILLRACE_HOST_DEVICE inline std::size_t norm_stretches(std::size_t parameters) {
    return (parameters + norm_stretch - 1) / norm_stretch;
}

/// `index` counts the stretches of all replicas.
template <class Team, class P>
MILLRACE_HOST_DEVICE void norm_stretch_squares(const Team& team, const GlobalNorm<P>& op, std::size_t index) {
    using Real = typename P::Real;
    const std::size_t stretches = norm_stretches(op.parameters);
    const std::size_t replica = index / stretches;
    const std::size_t first = (index - replica * stretches) * norm_stretch;
    const std::size_t end = first + norm_stretch < op.parameters ? first + norm_stretch : op.parameters;
    const Real* gradient = op.gradient + replica * op.parameters;
    Real sum = Real(0);
    for (std::size_t i = first + static_cast<std::size_t>(team.lane()); i < end; i += Team::width) {
        sum += gradient[i] * gradient[i];
    }
    sum = team.sum(sum);
    if (team.lane() == 0) {
        op.scratch[index] = sum;
    }
}

template <class Team, class P>
MILLRACE_HOST_DEVICE void norm_of_replica(const Team& team, const GlobalNorm<P>& op, int replica) {
    using Real = typename P::Real;
    const std::size_t stretches = norm_stretches(op.parameters);
    const Real* squares = op.scratch + static_cast<std::size_t>(replica) * stretches;
    Real sum = Real(0);
    for (std::size_t i = static_cast<std::size_t>(team.lane()); i < stretches; i += Team::width) {
        sum += squares[i];
    }
    sum = team.sum(sum);
    if (team.lane() == 0) {
        op.norm[replica] = sqrt_of(sum);
    }
}

}  // namespace millrace
