#include "model/shares.h"

#include <algorithm>
#include <cassert>

namespace millrace {

namespace {

int at_least_one(std::size_t count) {
    return static_cast<int>(std::clamp<std::size_t>(count, 1, 1u << 30));
}

/// Parts of nearly equal size.
void add_parts(std::vector<Share>& shares, int replica, int units, int most_units) {
    const int parts = (units + most_units - 1) / most_units;
    int first = 0;
    for (int part = 0; part < parts; ++part) {
        const int size = units / parts + (part < units % parts ? 1 : 0);
        shares.push_back({replica, 1, first, size});
        first += size;
    }
}

}  // namespace

std::vector<Share> divide(std::span<const int> units, std::size_t unit_tokens, std::size_t tokens_per_task) {
    std::vector<Share> shares;
    const int replicas = static_cast<int>(units.size());
    const int most_units = at_least_one(tokens_per_task / unit_tokens);
    const int whole_replicas = units.empty() || units[0] == 0 ? 1 : most_units / units[0];
    if (tokens_per_task >= whole_batch_tokens && whole_replicas > 0) {
        assert(std::ranges::all_of(units, [&](int count) { return count == units[0]; }));
        for (int replica = 0; replica < replicas && units[0] > 0; replica += whole_replicas) {
            shares.push_back({replica, std::min(whole_replicas, replicas - replica), 0, units[0]});
        }
        return shares;
    }
    for (int replica = 0; replica < replicas; ++replica) {
        add_parts(shares, replica, units[static_cast<std::size_t>(replica)], most_units);
    }
    return shares;
}

}  // namespace millrace
