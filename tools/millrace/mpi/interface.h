// What libmillrace_mpi.so offers: plain functions, since program and object share no more than this header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

/// See SharedWork (sim/sweep/sweep_runner.h).
struct RanksInterface {
    std::int64_t rank;
    std::int64_t ranks;
    void (*start_round)();
    std::size_t (*next_ticket)();
    void (*no_more_tickets)();
    bool (*any)(bool);
    void (*tick)();
    void (*leave)();                 ///< together with the other ranks; no call after it
    void (*give_up)(int exit_code);  ///< ends all of them
};

inline constexpr const char* join_ranks_symbol = "millrace_join_ranks_1";
/// Null on failure, with the reason in `error`. To be called once.
using JoinRanks = const RanksInterface* (*)(char* error, std::size_t size);

}  // namespace millrace
