#include "kernels/emulator/block.h"

#include <bit>
#include <sstream>
#include <string_view>

namespace millrace::emulator {

namespace {

constexpr unsigned lanes_of_a_warp = static_cast<unsigned>(warpSize);
constexpr unsigned all_lanes = 0xffffffffu;

const char* name_of(Operation operation) {
    switch (operation) {
        case Operation::barrier:
            return "__syncthreads";
        case Operation::sync_warp:
            return "__syncwarp";
        case Operation::ballot:
            return "__ballot_sync";
        case Operation::shuffle:
            return "__shfl_sync";
        case Operation::shuffle_xor:
            return "__shfl_xor_sync";
        case Operation::shuffle_down:
            return "__shfl_down_sync";
    }
    return "?";
}

std::string hexadecimal(unsigned mask) {
    std::ostringstream text;
    text << "0x" << std::hex << mask;
    return text.str();
}

std::string describe(uint3 position) {
    return "(" + std::to_string(position.x) + ", " + std::to_string(position.y) + ", " + std::to_string(position.z) +
           ")";
}

std::string describe(const std::source_location& where) {
    const std::string_view path = where.file_name();
    return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(where.line());
}

std::string describe(const Request& request) {
    std::string text = name_of(request.operation);
    if (request.operation != Operation::barrier) {
        text += " with mask " + hexadecimal(request.mask);
    }
    return text + " at " + describe(request.where);
}

bool same_place(const std::source_location& a, const std::source_location& b) {
    return a.line() == b.line() && std::string_view(a.file_name()) == b.file_name();
}

}  // namespace

Block::Block(const Launch& launch, uint3 index) : launch_(launch), index_(index) {
    const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
    threads_.resize(threads);
    running_ = threads;
    for (unsigned first = 0; first < threads; first += lanes_of_a_warp) {
        const unsigned lanes = threads - first;
        warps_.push_back({lanes >= lanes_of_a_warp ? all_lanes : (1u << lanes) - 1u});
    }
}

bool Block::arrive(unsigned thread, const Request& request) {
    threads_[thread].state = State::waiting;
    threads_[thread].request = request;
    --running_;
    const bool complete =
        request.operation == Operation::barrier ? arrive_at_barrier(thread, request) : arrive_in_warp(thread, request);
    if (!complete) {
        report_if_stuck();
    }
    return complete;
}

void Block::exit(unsigned thread) {
    threads_[thread].state = State::exited;
    --running_;
    ++exited_;
    const unsigned warp_index = thread / lanes_of_a_warp;
    Warp& warp = warps_[warp_index];
    warp.live &= ~(1u << thread % lanes_of_a_warp);
    for (std::size_t i = warp.meetings.size(); i-- > 0;) {  // backwards: a complete meeting leaves the list
        complete(warp_index, warp.meetings[i]);
    }
    complete_barrier();
    report_if_stuck();
}

// ---- the barrier of the block ---------------------------------------------------------------------------------------

bool Block::arrive_at_barrier(unsigned thread, const Request& request) {
    if (at_barrier_ == 0) {
        barrier_ = request.where;
    } else if (!same_place(barrier_, request.where)) {
        // The instruction counts arrivals, so a device may let it pass; the language does not.
        fail(thread, request.where,
             "the thread comes to this __syncthreads while others of its block wait in the one at " +
                 describe(barrier_));
    }
    ++at_barrier_;
    return complete_barrier();
}

bool Block::complete_barrier() {
    if (at_barrier_ == 0 || at_barrier_ + exited_ < size()) {
        return false;
    }
    at_barrier_ = 0;
    for (unsigned thread = 0; thread < size(); ++thread) {
        if (threads_[thread].state == State::waiting) {
            release(thread);
        }
    }
    return true;
}

// ---- meetings within a warp -----------------------------------------------------------------------------------------

bool Block::arrive_in_warp(unsigned thread, const Request& request) {
    const unsigned lane = thread % lanes_of_a_warp;
    const unsigned bit = 1u << lane;
    if ((request.mask & bit) == 0) {
        fail(thread, request.where,
             std::string(name_of(request.operation)) + " is called by lane " + std::to_string(lane) +
                 ", which its mask " + hexadecimal(request.mask) + " does not name");
    }
    if (!std::has_single_bit(request.width) || request.width > lanes_of_a_warp) {
        fail(thread, request.where,
             "the width of a shuffle is a power of two up to 32, not " +
                 std::to_string(static_cast<int>(request.width)));
    }
    std::vector<Meeting>& meetings = warps_[thread / lanes_of_a_warp].meetings;
    for (Meeting& meeting : meetings) {
        if (meeting.operation == request.operation && meeting.mask == request.mask) {
            meeting.arrived |= bit;
            return complete(thread / lanes_of_a_warp, meeting);
        }
    }
    meetings.push_back({request.operation, request.mask, bit});
    return complete(thread / lanes_of_a_warp, meetings.back());
}

bool Block::complete(unsigned warp_index, Meeting& meeting) {
    Warp& warp = warps_[warp_index];
    if ((meeting.mask & warp.live & ~meeting.arrived) != 0) {
        return false;
    }
    const unsigned first_thread = warp_index * lanes_of_a_warp;
    const Meeting complete_one = meeting;
    meeting = warp.meetings.back();
    warp.meetings.pop_back();
    hand_out(first_thread, complete_one);
    for (unsigned left = complete_one.arrived; left != 0; left &= left - 1) {
        release(first_thread + static_cast<unsigned>(std::countr_zero(left)));
    }
    return true;
}

void Block::hand_out(unsigned first_thread, const Meeting& meeting) {
    const bool is_vote = meeting.operation == Operation::ballot || meeting.operation == Operation::sync_warp;
    unsigned votes = 0;
    for (unsigned left = meeting.arrived; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        Thread& thread = threads_[first_thread + lane];
        if (is_vote) {
            votes |= static_cast<unsigned>(thread.request.bits) << lane;
            continue;
        }
        const unsigned source = source_lane(lane, thread.request);
        if ((meeting.arrived >> source & 1u) == 0) {
            const bool is_named = (meeting.mask >> source & 1u) != 0;
            fail(first_thread + lane, thread.request.where,
                 std::string(name_of(meeting.operation)) + " reads lane " + std::to_string(source) +
                     (is_named ? ", which has exited or never was"
                               : ", which its mask " + hexadecimal(meeting.mask) + " does not name"));
        }
        thread.result = threads_[first_thread + source].request.bits;
    }
    if (is_vote) {
        for (unsigned left = meeting.arrived; left != 0; left &= left - 1) {
            threads_[first_thread + static_cast<unsigned>(std::countr_zero(left))].result = votes;
        }
    }
}

/// As the CUDA C++ Programming Guide has it, "Warp Shuffle Functions": a lane whose source lies beyond what its width
/// allows reads its own value.
unsigned Block::source_lane(unsigned lane, const Request& request) const {
    const unsigned segment = lane & ~(request.width - 1);
    const unsigned past_segment = segment + request.width;
    switch (request.operation) {
        case Operation::shuffle:
            return segment | (request.operand & (request.width - 1));
        case Operation::shuffle_xor: {
            const unsigned source = lane ^ request.operand;
            return source < past_segment ? source : lane;
        }
        case Operation::shuffle_down: {
            const bool is_inside = request.operand < request.width && lane + request.operand < past_segment;
            return is_inside ? lane + request.operand : lane;
        }
        default:
            return lane;
    }
}

void Block::release(unsigned thread) {
    threads_[thread].state = State::running;
    ++running_;
}

// ---- reports --------------------------------------------------------------------------------------------------------

void Block::report_if_stuck() const {
    if (running_ > 0 || is_done()) {
        return;
    }
    // Threads that wait for the same thing at the same place are one entry: the first of them, and how many.
    struct Entry {
        unsigned thread;
        unsigned count;
    };
    std::vector<Entry> entries;
    for (unsigned thread = 0; thread < size(); ++thread) {
        if (threads_[thread].state != State::waiting) {
            continue;
        }
        const Request& request = threads_[thread].request;
        bool is_known = false;
        for (Entry& entry : entries) {
            const Request& other = threads_[entry.thread].request;
            if (other.operation == request.operation && other.mask == request.mask &&
                same_place(other.where, request.where)) {
                ++entry.count;
                is_known = true;
                break;
            }
        }
        if (!is_known) {
            entries.push_back({thread, 1});
        }
    }
    std::string text =
        describe_block(launch_, index_) + ": no thread can go on, each waits for one that does not come.";
    for (const Entry& entry : entries) {
        text += " Thread " + describe(position(entry.thread, launch_.block));
        if (entry.count > 1) {
            text += " and " + std::to_string(entry.count - 1) + " more wait in ";
        } else {
            text += " waits in ";
        }
        text += describe(threads_[entry.thread].request) + ".";
    }
    if (exited_ > 0) {
        text += " " + std::to_string(exited_) + " have exited.";
    }
    throw EmulationError(text);
}

void Block::fail(unsigned thread, const std::source_location& where, const std::string& what) const {
    throw EmulationError(describe_block(launch_, index_) + ", thread " + describe(position(thread, launch_.block)) +
                         ", " + describe(where) + ": " + what + ".");
}

uint3 position(unsigned linear, dim3 extent) {
    return {linear % extent.x, linear / extent.x % extent.y, linear / extent.x / extent.y};
}

std::string describe_block(const Launch& launch, uint3 block) {
    return "Kernel " + std::string(launch.kernel) + ", block " + describe(block);
}

void check_limits(const Launch& launch) {
    const auto describe_extent = [](dim3 extent) { return describe({extent.x, extent.y, extent.z}); };
    const dim3 block = launch.block;
    const dim3 grid = launch.grid;
    const bool block_fits = block.x >= 1 && block.y >= 1 && block.z >= 1 && block.x <= 1024 && block.y <= 1024 &&
                            block.z <= 64 && block.x * block.y * block.z <= 1024;
    if (!block_fits) {
        throw EmulationError("Kernel " + std::string(launch.kernel) + " is launched with blocks of " +
                             describe_extent(block) +
                             " threads; a block has at least one and at most 1024, of which 64 in z.");
    }
    const bool grid_fits =
        grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535;
    if (!grid_fits) {
        throw EmulationError("Kernel " + std::string(launch.kernel) + " is launched with a grid of " +
                             describe_extent(grid) +
                             " blocks; a grid has at least one, and at most 65535 in y and in z.");
    }
}

}  // namespace millrace::emulator
