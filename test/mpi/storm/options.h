// SPDX-License-Identifier: BSD-3-Clause
//
// What the storm was asked for. The schedule is a function of seed, ranks,
// threads, max_bytes and messages alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace storm {

struct Options {
    std::uint64_t seed = 1;
    std::uint64_t messages = 2000;  // of all ranks and threads together
    double seconds = 0;             // not 0: as many rounds as fit, instead of `messages`
    int threads = 1;                // storming; more than one asks for MPI_THREAD_MULTIPLE
    std::size_t max_bytes = 4u << 20;
    int compute_us = 0;             // compute up to so long between calls, with no call of MPI
    int stall_seconds = 60;         // without progress for so long: print the state, end the job
};

}  // namespace storm
