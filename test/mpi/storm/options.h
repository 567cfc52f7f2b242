// SPDX-License-Identifier: BSD-3-Clause
//
// The options of the storm. The schedule is a function of seed, ranks, threads,
// max_bytes and messages only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace storm {

struct Options {
    std::uint64_t seed = 1;
    std::uint64_t messages = 2000;  // of all ranks and threads together
    double seconds = 0;             // if not 0: storm for this time, instead of sending `messages`
    int threads = 1;                // storming threads; more than one requires MPI_THREAD_MULTIPLE
    std::size_t max_bytes = 4u << 20;
    int compute_us = 0;      // compute up to this long between calls of MPI
    int level = 0;           // requested from MPI: MPI_THREAD_…; MPI_THREAD_MULTIPLE if threads > 1
    int stall_seconds = 60;  // print the state and end the job after this time without progress
};

}  // namespace storm
