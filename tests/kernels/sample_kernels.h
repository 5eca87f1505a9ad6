// Small kernels, each right as it is and wrong in ways that can be asked for: what the emulator has to tell apart.
#pragma once

namespace millrace {

enum class Fault {
    none,
    no_barrier_after_load,   ///< multiply_tiled reads a tile before all of it is there
    no_barrier_before_load,  ///< multiply_tiled overwrites a tile that others still read
    lane_has_exited,         ///< sum_rows lets lanes without an element return before the others add up
    row_too_many,            ///< reverse_rows does not test whether its row exists
    shared_memory_short,     ///< reverse_rows asks for too little shared memory
    no_syncwarp,             ///< rotate takes a shuffle for something that orders memory
    blocks_overlap,          ///< rotate has each block write one element of the next block's
};

/// c [rows][columns] = a [rows][inner] times b [inner][columns], in tiles held in shared memory.
void multiply_tiled(Fault fault, const float* a, const float* b, float* c, int rows, int columns, int inner);

/// sums [rows] of x [rows][columns], at most 32 columns, one warp for each row.
void sum_rows(Fault fault, const float* x, float* sums, int rows, int columns);

/// y [rows][columns] has the rows of x backwards, two rows in each block, through dynamic shared memory.
void reverse_rows(Fault fault, const float* x, float* y, int rows, int columns);

/// Within each warp's 32 elements of x, every lane takes the one of the next lane. Through memory, not by a shuffle.
void rotate(Fault fault, const float* x, float* y, int warps);

}  // namespace millrace
