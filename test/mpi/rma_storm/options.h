// SPDX-License-Identifier: BSD-3-Clause
//
// The options of the storm. The plan is a function of seed, ranks, threads, max_bytes, operations or rounds, and of the
// features in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rma_storm {

// What a plan may contain. `--without` names some that it must not contain, to find out which one is at fault,
// and `--with` some that it contains only if asked for.
enum class Feature {
    // windows
    kCreate,
    kAllocate,
    kShared,
    kDynamic,
    // epochs
    kFence,
    kPscw,
    kLocks,
    kLockAll,
    kExclusive,  // locks: without it, all locks are shared
    kNested,     // locks: several targets are locked at the same time
    kMixed,      // locks: a rank locks all targets while others lock single ones exclusively
    kCrowded,    // locks: several ranks lock all targets then; only if asked for (ways.cc)
    // areas of a window (plan.h)
    kReads,
    kWrites,
    kSums,
    kSequences,
    kFlushed,
    kTickets,
    kRaces,
    kUpdates,
    // details
    kDirect,  // loads and stores in the memory of other ranks
    kFlushLocal,
    kRequests,  // MPI_Rput, …
    kLate,      // requests are completed after their epoch
    kDerived,   // datatypes other than predefined ones
    kPairs,     // MPI_2INT
    kUnsigned,  // MPI_MAX and MPI_MIN on unsigned integers
    kBottom,    // MPI_BOTTOM and absolute addresses at the origin
    kEmpty,     // empty groups
    kAsserts,
    kHints,    // info keys
    kSubsets,  // communicators other than the whole
    kZero,     // operations without data
    kOdd,      // memory that MPI allocates has any size, not only multiples of 64
    kCount
};

enum class Sabotage { kNone, kLose, kDouble, kMisplace };

struct Options {
    std::uint64_t seed = 1;
    std::uint64_t rounds = 0;         // if not 0: so many, instead of `operations`
    std::uint64_t operations = 5000;  // of all ranks and threads together
    int threads = 1;                  // more than one requires MPI_THREAD_MULTIPLE
    std::size_t max_bytes = 1u << 20;
    int stall_seconds = 60;                   // print the state and end the job after this time without progress
    std::uint64_t print = ~std::uint64_t{0};  // each rank 0 prints the plan of this round
    Sabotage sabotage = Sabotage::kNone;
    std::uint64_t without = std::uint64_t{1} << static_cast<unsigned>(Feature::kCrowded);  // features, by bit

    bool has(Feature feature) const { return (without >> static_cast<unsigned>(feature) & 1) == 0; }
};

// Ends the program with a usage message if the arguments are wrong.
Options parse(int argc, char** argv);

// "reproduce: --seed 7 --operations 2000 …": the arguments that reproduce the run.
std::string reproduce(const Options& options);

}  // namespace rma_storm
