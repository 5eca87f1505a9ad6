#include "tools/millrace/ranks.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tools/millrace/mpi/interface.h"
#include "version.h"

namespace millrace {
namespace {

/// Stays open: MPI does not survive being closed.
void* open_object() {
    std::error_code failed;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
    std::string tried;
    for (const std::filesystem::path& place :
         {program / "libmillrace_mpi.so", program.parent_path() / "lib" / "millrace" / "libmillrace_mpi.so"}) {
        // Open MPI opens parts of itself, which look for its symbols among the global ones.
        if (void* object = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL); object != nullptr) {
            return object;
        }
        tried += std::string(tried.empty() ? "" : "; ") + dlerror();
    }
    throw std::runtime_error("libmillrace_mpi.so does not open (" + tried + ")");
}

std::int64_t number_in(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? 0 : std::strtoll(text, nullptr, 10);
}

}  // namespace

bool started_with_others() {
    return number_in("OMPI_COMM_WORLD_SIZE") > 1 || number_in("PMI_SIZE") > 1 ||
           (std::getenv("PMIX_RANK") != nullptr && number_in("SLURM_NTASKS") > 1);
}

Ranks::Ranks() {
    if (!mpi_built) {
        throw std::runtime_error(
            "this millrace was started as one of several processes, but was built without MPI: build it with "
            "MILLRACE_MPI=ON, or give each process a part of the sweep with --shard");
    }
    const auto join = reinterpret_cast<JoinRanks>(dlsym(open_object(), join_ranks_symbol));
    if (join == nullptr) {
        throw std::runtime_error("the libmillrace_mpi.so found is of another build of millrace");
    }
    std::array<char, 256> error{};
    mpi_ = join(error.data(), error.size());
    if (mpi_ == nullptr) {
        throw std::runtime_error(error.data());
    }
    work_ = {mpi_->rank, mpi_->ranks, mpi_->start_round, mpi_->next_ticket, mpi_->no_more_tickets,
             mpi_->any,  mpi_->tick};
}

Ranks::~Ranks() {
    mpi_->leave();
}

void Ranks::give_up(int exit_code) {
    mpi_->give_up(exit_code);
    std::abort();  // not reached: MPI_Abort does not return
}

}  // namespace millrace
