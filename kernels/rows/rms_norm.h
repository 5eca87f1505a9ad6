// RMSNorm over rows of x, [S][B][T][D]: y = x / rms(x) * gain. Unit of a team: one row, or a few rows in the backward
// pass, whose gain gradient is added up part by part and then over the parts.
#pragma once

#include "kernels/math.h"
#include "kernels/ops.h"

namespace millrace {

template <class Team, class P>
MILLRACE_HOST_DEVICE void rms_norm_forward_row(const Team& team, const RmsNormForward<P>& op, int row) {
    using Real = typename P::Real;
    using Operand = typename P::Operand;
    const auto width = static_cast<std::size_t>(op.width);
    const Real* __restrict x = op.x + static_cast<std::size_t>(row) * width;
    const Real* __restrict gain =
        op.gain + static_cast<std::size_t>(row / op.extent.rows_per_replica()) * op.parameter_stride;
    Operand* __restrict y = op.y + static_cast<std::size_t>(row) * width;
    Real squares = Real(0);
    for (int i = team.lane(); i < op.width; i += Team::width) {
        squares += x[i] * x[i];
    }
    const Real inverse_rms =
        Real(1) / sqrt_of(team.sum(squares) / static_cast<Real>(op.width) + static_cast<Real>(rms_norm_epsilon));
    for (int i = team.lane(); i < op.width; i += Team::width) {
        y[i] = store<Operand>(x[i] * inverse_rms * gain[i]);
    }
    if (op.inverse_rms != nullptr && team.lane() == 0) {
        op.inverse_rms[row] = inverse_rms;
    }
}

/// Rows whose gain gradients make one part.
inline constexpr int rms_norm_part_rows = 16;

/// Parts of one replica; `scratch` is [S][parts][D].
MILLRACE_HOST_DEVICE inline int rms_norm_parts(const Extent& extent) {
    return (extent.rows_per_replica() + rms_norm_part_rows - 1) / rms_norm_part_rows;
}

/// With n = x / rms and g = dy * gain: dx += (g - n mean(g n)) / rms, and the part's share of the gain gradient is the
/// sum of dy n. `index` counts the parts of all replicas.
template <class Team, class P>
MILLRACE_HOST_DEVICE void rms_norm_backward_part(const Team& team, const RmsNormBackward<P>& op, int index) {
    using Real = typename P::Real;
    const int parts = rms_norm_parts(op.extent);
    const int replica = index / parts;
    const int replica_rows = op.extent.rows_per_replica();
    const int first = (index - replica * parts) * rms_norm_part_rows;
    const int last = first + rms_norm_part_rows < replica_rows ? first + rms_norm_part_rows : replica_rows;
    const auto width = static_cast<std::size_t>(op.width);
    const Real* __restrict gain = op.gain + static_cast<std::size_t>(replica) * op.parameter_stride;
    Real* __restrict share = op.scratch + static_cast<std::size_t>(index) * width;
    for (int i = team.lane(); i < op.width; i += Team::width) {
        share[i] = Real(0);
    }
    for (int row = replica * replica_rows + first; row < replica * replica_rows + last; ++row) {
        const Real* __restrict x = op.x + static_cast<std::size_t>(row) * width;
        const typename P::Operand* __restrict dy = op.dy + static_cast<std::size_t>(row) * width;
        Real* __restrict dx = op.dx + static_cast<std::size_t>(row) * width;
        const Real inverse_rms = op.inverse_rms[row];
        Real product = Real(0);
        for (int i = team.lane(); i < op.width; i += Team::width) {
            product += load<Real>(dy[i]) * gain[i] * x[i];
        }
        const Real along = team.sum(product) * inverse_rms * inverse_rms * inverse_rms / static_cast<Real>(op.width);
        for (int i = team.lane(); i < op.width; i += Team::width) {
            const Real slope = load<Real>(dy[i]);
            share[i] += slope * x[i] * inverse_rms;
            dx[i] += slope * gain[i] * inverse_rms - x[i] * along;
        }
    }
}

/// The gain gradient of one replica: the sum of its parts, in order.
template <class Team, class P>
MILLRACE_HOST_DEVICE void rms_norm_gain_gradient(const Team& team, const RmsNormBackward<P>& op, int replica) {
    using Real = typename P::Real;
    const int parts = rms_norm_parts(op.extent);
    const auto width = static_cast<std::size_t>(op.width);
    const Real* __restrict share = op.scratch + static_cast<std::size_t>(replica * parts) * width;
    Real* __restrict gradient = op.gain_gradient + static_cast<std::size_t>(replica) * op.gradient_stride;
    for (int i = team.lane(); i < op.width; i += Team::width) {
        Real sum = Real(0);
        for (int part = 0; part < parts; ++part) {
            sum += share[static_cast<std::size_t>(part) * width + static_cast<std::size_t>(i)];
        }
        gradient[i] = sum;
    }
}

}  // namespace millrace
