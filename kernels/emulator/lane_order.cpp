#include "kernels/emulator/lane_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/emulator/emulator.h"

namespace millrace::emulator {

namespace {

thread_local std::uint64_t order_seed = 0;

/// SplitMix64, by Sebastiano Vigna: all that is asked of it is to be the same everywhere.
std::uint64_t next(std::uint64_t& state) {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

}  // namespace

void set_lane_order(std::uint64_t seed) {
    order_seed = seed;
}

std::vector<unsigned> ordered(unsigned count, std::uint64_t salt) {
    std::vector<unsigned> order(count);
    std::iota(order.begin(), order.end(), 0u);
    if (order_seed == 1) {
        std::reverse(order.begin(), order.end());
    } else if (order_seed > 1) {
        std::uint64_t state = order_seed ^ (salt * 0xd1342543de82ef95u);
        for (unsigned left = count; left > 1; --left) {
            std::swap(order[left - 1], order[next(state) % left]);
        }
    }
    return order;
}

}  // namespace millrace::emulator
