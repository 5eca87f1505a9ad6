// How the sequences of all replicas are divided into tasks of a backend.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace millrace {

/// Units `first` ... `first + units - 1` of each of the replicas `replica` ... `replica + replicas - 1`. A unit is a
/// sequence, or a prompt with all its continuations.
struct Share {
    int replica = 0;
    int replicas = 1;
    int first = 0;
    int units = 0;
};

/// A backend whose tasks hold this many tokens or more is a device that replays recorded work: it gets whole batches
/// of constant shape. Others get parts that fit a cache and hold only what has to be computed.
inline constexpr std::size_t whole_batch_tokens = 65536;

/// Shares of at most `tokens_per_task` tokens, but at least one unit, in the order of replicas and units. `units` [S]
/// says how many each replica has; `unit_tokens` how many tokens each unit has. Below whole_batch_tokens a share
/// belongs to one replica, and a replica's shares depend on nothing but its own units: what is computed per share and
/// then added up is the same alone and among others. From there on shares hold several whole replicas if they fit, for
/// which all replicas must have equally many units.
std::vector<Share> divide(std::span<const int> units, std::size_t unit_tokens, std::size_t tokens_per_task);

}  // namespace millrace
