// SPDX-License-Identifier: BSD-3-Clause
//
// The state of each thread, and a guard that prints it and ends the process when there is no progress for too long. Also
// the functions that report a failure with the arguments that reproduce it.
//
// Threading: a thread writes its own State; the guard reads all.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "options.h"

namespace rma_storm {

struct State {
    int rank = 0;  // in MPI_COMM_WORLD
    int thread = 0;
    std::atomic<const char*> doing{"starting"};
    std::atomic<const char*> window{"none"};
    std::atomic<const char*> epoch{"none"};
    std::atomic<std::uint64_t> round{0}, phase{0};
    std::atomic<std::uint64_t> operations{0};  // started
    std::atomic<int> target{-1};               // of the last lock, flush or operation

    std::uint64_t steps() const { return operations + steps_taken; }
    void now(const char* what) {
        doing = what;
        ++steps_taken;
    }

private:
    std::atomic<std::uint64_t> steps_taken{0};
};

[[noreturn]] void fail(const Options& options, const State& state, const std::string& what);

// Fails unless a function of MPI has succeeded.
void must(const Options& options, const State& state, int code, const char* function);

// Guards `count` states until stop_watchdog(). The guard's thread makes no MPI calls.
void start_watchdog(const Options& options, const State* states, int count);
void stop_watchdog();

}  // namespace rma_storm
