// How fast a core multiplies and adds at best: the floor that kernels are measured against.
#pragma once

namespace millrace {

/// Single-precision operations a second of one thread in a loop of independent fused multiply-adds on registers, with
/// the widest vectors of this machine, by the thread's CPU time; the best of several short runs. A fused multiply-add
/// counts as two.
double peak_flop_per_second();

}  // namespace millrace
