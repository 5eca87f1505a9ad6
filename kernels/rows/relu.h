// ReLU and the conversion of numbers to operands. Unit of a team: one element, so the team has no part in it.
#pragma once

#include "kernels/ops.h"

namespace millrace {

template <class P>
MILLRACE_HOST_DEVICE void relu_forward_element(const ReluForward<P>& op, std::size_t i) {
    using Real = typename P::Real;
    const Real x = load<Real>(op.x[i]);
    op.x[i] = store<typename P::Operand>(x > Real(0) ? x : Real(0));
}

template <class P>
MILLRACE_HOST_DEVICE void relu_backward_element(const ReluBackward<P>& op, std::size_t i) {
    using Real = typename P::Real;
    const Real gradient = load<Real>(op.gradient[i]);
    op.gradient[i] = store<typename P::Operand>(load<Real>(op.activation[i]) > Real(0) ? gradient : Real(0));
}

template <class P>
MILLRACE_HOST_DEVICE void to_operand_element(const ToOperand<P>& op, std::size_t i) {
    op.y[i] = store<typename P::Operand>(op.x[i]);
}

}  // namespace millrace
