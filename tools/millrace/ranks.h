// The processes that mpirun or srun has started together with this one.
#pragma once

#include <memory>

#include "sim/sweep/sweep_runner.h"

namespace millrace {

/// Whether this process was started as one of several, by the environment of Open MPI, MPICH or SLURM. Costs nothing:
/// MPI itself, a shared object of its own (libmillrace_mpi.so), is opened only then.
bool started_with_others();

/// Membership in the group of processes, from the first to the last use of MPI: one per process.
class Ranks {
   public:
    /// Throws std::runtime_error when this millrace was built without MPI, or MPI does not start.
    Ranks();
    /// Waits for the other ranks.
    ~Ranks();
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;

    const SharedWork& work() const { return work_; }

    /// Ends all processes of the group at once: this one cannot go on, and the others would wait for it forever.
    [[noreturn]] void give_up(int exit_code);

   private:
    const struct RanksInterface* mpi_;
    SharedWork work_;
};

}  // namespace millrace
