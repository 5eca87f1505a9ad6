// libmillrace_mpi.so: ranks of MPI share the blocks of a sweep without a manager.
//
// The next block is a number in rank 0's memory, which every rank raises by one with a one-sided fetch-and-add. No rank
// answers the others' requests, so all of them compute.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

#include "tools/millrace/mpi/interface.h"

namespace {

using namespace millrace;

std::mutex one_at_a_time;  // MPI_THREAD_SERIALIZED
MPI_Win window = MPI_WIN_NULL;
std::int64_t* ticket = nullptr;  ///< in rank 0 only
RanksInterface interface {};

/// Waits without the busy loop of MPI's own waiting: the cores are for the ranks that still compute.
void wait_for(MPI_Request request) {
    constexpr useconds_t pause_us = 500;
    for (int done = 0; done == 0;) {
        {
            const std::lock_guard lock(one_at_a_time);
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        if (done == 0) {
            usleep(pause_us);
        }
    }
}

void barrier() {
    MPI_Request request = MPI_REQUEST_NULL;
    {
        const std::lock_guard lock(one_at_a_time);
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
    }
    wait_for(request);
}

std::int64_t fetch(MPI_Op operation, std::int64_t operand) {
    std::int64_t before = 0;
    const std::lock_guard lock(one_at_a_time);
    MPI_Fetch_and_op(&operand, &before, MPI_INT64_T, 0, 0, operation, window);
    MPI_Win_flush(0, window);
    return before;
}

void start_round() {
    barrier();  // nobody takes a ticket of the last round any more
    if (interface.rank == 0) {
        fetch(MPI_REPLACE, 0);
    }
    barrier();
}

std::size_t next_ticket() {
    return static_cast<std::size_t>(fetch(MPI_SUM, 1));
}

void no_more_tickets() {
    constexpr std::int64_t beyond_any_round = std::int64_t{1} << 40;
    fetch(MPI_SUM, beyond_any_round);
}

bool any(bool here) {
    const int mine = here ? 1 : 0;
    int all = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    {
        const std::lock_guard lock(one_at_a_time);
        MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD, &request);
    }
    wait_for(request);
    return all != 0;
}

/// Where the network cannot reach into memory by itself, a rank's part of a fetch is done when it calls MPI.
void tick() {
    int there = 0;
    const std::lock_guard lock(one_at_a_time);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

void leave() {
    barrier();
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
}

void give_up(int exit_code) {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const RanksInterface* millrace_join_ranks_1(char* error,
                                                                                              std::size_t size) {
    int provided = 0;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS ||
        provided < MPI_THREAD_SERIALIZED) {
        std::snprintf(error, size, "MPI does not start, or not for several threads");
        return nullptr;
    }
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const MPI_Aint bytes = rank == 0 ? sizeof(std::int64_t) : 0;
    MPI_Win_allocate(bytes, sizeof(std::int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &ticket, &window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    interface = {rank, ranks, start_round, next_ticket, no_more_tickets, any, tick, leave, give_up};
    return &interface;
}
