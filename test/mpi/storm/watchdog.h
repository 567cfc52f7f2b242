// SPDX-License-Identifier: BSD-3-Clause
//
// The state of each storming thread, and a guard that prints it and ends the process
// when there is no progress for too long. Also the function that reports a failure with
// the arguments that reproduce it.
//
// Threading: a storming thread writes its own State; the guard reads all.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "options.h"

namespace storm {

struct State {
    int rank = 0;
    int thread = 0;
    std::atomic<const char*> phase{"start"};
    std::atomic<std::uint64_t> round{0};
    std::atomic<std::uint64_t> sends{0};  // started
    std::atomic<std::uint64_t> sends_done{0};
    std::atomic<std::uint64_t> receives{0};  // posted
    std::atomic<std::uint64_t> receives_done{0};
    std::atomic<int> channel{-1}, source{-1}, tag{-1};  // of the receive posted last

    std::uint64_t steps() const { return sends + sends_done + receives + receives_done + round; }
};

// "--seed 7 --messages 2000 …": the arguments that reproduce the run.
std::string reproduce(const Options& options);

[[noreturn]] void fail(const Options& options, const State& state, const std::string& what);

// Guards `count` states until stop_watchdog(). The guard's thread makes no MPI calls.
void start_watchdog(const Options& options, const State* states, int count);
void stop_watchdog();

}  // namespace storm
