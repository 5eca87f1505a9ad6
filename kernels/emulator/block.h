// Who waits for whom in one block: the rules by which CUDA threads meet, without the means by which they run.
//
// A thread that asks to meet others either completes the meeting, and all who waited for it may go on, or has to wait.
// Threads that have exited count as arrived. The caller sees to it that one thread is inside at a time.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "kernels/emulator/emulator.h"

namespace millrace::emulator {

class Block {
   public:
    Block(const Launch& launch, uint3 index);

    /// True if the thread can go on at once; else it waits until can_go_on(). Throws EmulationError if the meeting
    /// is against the rules or if, with this thread waiting, no thread of the block can go on.
    bool arrive(unsigned thread, const Request& request);

    /// The thread has left the kernel. Throws like arrive().
    void exit(unsigned thread);

    bool can_go_on(unsigned thread) const { return threads_[thread].state == State::running; }
    bool has_exited(unsigned thread) const { return threads_[thread].state == State::exited; }
    bool is_done() const { return exited_ == size(); }
    unsigned size() const { return static_cast<unsigned>(threads_.size()); }

    /// What the last meeting gave to the thread.
    std::uint64_t result(unsigned thread) const { return threads_[thread].result; }

   private:
    enum class State : std::uint8_t { running, waiting, exited };
    struct Thread {
        State state = State::running;
        std::uint64_t result = 0;
        Request request{};  // while it waits
    };
    /// Lanes of a warp that came for the same operation with the same mask.
    struct Meeting {
        Operation operation;
        unsigned mask;
        unsigned arrived;
    };
    struct Warp {
        unsigned live;  // lanes that exist and have not exited
        std::vector<Meeting> meetings{};
    };

    bool arrive_at_barrier(unsigned thread, const Request& request);
    bool arrive_in_warp(unsigned thread, const Request& request);
    bool complete_barrier();
    bool complete(unsigned warp_index, Meeting& meeting);
    void hand_out(unsigned first_thread, const Meeting& meeting);
    unsigned source_lane(unsigned lane, const Request& request) const;
    void release(unsigned thread);
    void report_if_stuck() const;
    [[noreturn]] void fail(unsigned thread, const std::source_location& where, const std::string& what) const;

    Launch launch_;
    uint3 index_;
    std::vector<Thread> threads_;
    std::vector<Warp> warps_;
    unsigned at_barrier_ = 0;
    unsigned running_;
    unsigned exited_ = 0;
    std::source_location barrier_{};  // where the threads at the barrier wait
};

/// Position of a thread, counted through the block, within it; also of a block within the grid.
uint3 position(unsigned linear, dim3 extent);

/// Throws EmulationError if every device would refuse the launch.
void check_limits(const Launch& launch);

/// "Kernel scale, block (0, 1, 0)"
std::string describe_block(const Launch& launch, uint3 block);

}  // namespace millrace::emulator
