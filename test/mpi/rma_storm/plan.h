// SPDX-License-Identifier: BSD-3-Clause
//
// The plan of one round: a window, and what all ranks do with it. Every rank computes the same plan from the seed,
// without communication, and therefore knows the expected content of every window and every result.
//
// A round is a sequence of phases. A phase lies between two synchronizations; a fence or lock_all epoch may have several.
// So that the outcome does not depend on timing, the memory of each target is divided into areas anew in each phase:
//
//     read       only read, by anybody
//     written    written by one operation
//     sum        accumulated by anybody, with one commutative operation on one datatype
//     sequence   accumulated by one thread of one rank with one operation, or read: these take effect in order
//     flushed    used by one thread of one rank in any way, with a flush between two operations
//
// In the others the outcome depends on timing, but not every outcome is right (races.cc):
//
//     tickets    each operation sets a bit of its own and fetches what was there
//     race       compare-and-swaps by several ranks, all with the same comparand: one of them succeeds
//     update     read, changed and written back under an exclusive lock; each update sets a bit of its own
//
// Positions in the memory of a rank count all of its segments, which begin at multiples of kSegmentStep.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "element.h"
#include "options.h"
#include "pattern.h"
#include "shape.h"

namespace rma_storm {

enum class WindowKind { kCreated, kAllocated, kShared, kDynamic };
enum class EpochKind { kFence, kPscw, kLocks, kLockAll };
enum class AreaKind { kRead, kWritten, kSum, kSequence, kFlushed, kTickets, kRace, kUpdate };
enum class Call { kPut, kGet, kAccumulate, kGetAccumulate, kFetchAndOp, kCompareAndSwap, kUpdate, kStore, kLoad };

constexpr std::size_t kSegmentStep = 64;

struct Segment {
    std::size_t at, bytes;
};

struct WindowPlan {
    WindowKind kind = WindowKind::kCreated;
    std::vector<std::vector<Segment>> segments;  // by rank; more than one only if dynamic
    std::vector<int> unit;                       // displacement unit by rank
    bool no_locks = false;                       // info keys
    bool unordered = false;
    bool one_operation = false;
    bool noncontiguous = false;
    bool hints = false;

    std::size_t bytes(int rank) const;  // the end of its last segment
};

struct Area {
    AreaKind kind;
    int target;
    std::size_t at, bytes;
    Element element;
    Combine combine;  // sum, sequence, tickets
    bool fresh;       // the target stores new content before the phase
    Content content;  // if fresh
    std::uint64_t key;
};

struct Operation {
    Call call;
    int area;
    int origin, target;  // ranks in the round's communicator
    int thread;          // of the origin
    int visit;           // index in Phase::visits, or -1
    Combine combine;
    Recipe at_target, at_origin, at_result;
    std::size_t at;  // where the target's shape begins
    Content content;
    std::uint64_t key;  // of the operand
    std::uint64_t
        comparand_key;  // compare-and-swap in a flushed area: an operand that differs from the content, if not 0
    bool request;
    bool flush;  // complete all previous operations on the target first

    bool has_result() const;
    bool has_operand() const;
    std::size_t bytes() const { return at_target.elements * bytes_of(at_target.element); }
};

enum class LockKind { kShared, kExclusive, kAll };

// One lock epoch of one thread.
struct Visit {
    int origin, target;  // target: -1 for all
    int thread;
    LockKind lock;
    bool no_check;
    std::uint64_t place;  // order among the visits of the thread
};

struct Phase {
    EpochKind kind;
    bool opens, closes;  // the epoch
    bool check;          // compare the windows after it
    bool barrier;        // after the check
    bool nested;         // locks: each thread holds all of its locks at the same time, all are shared
    bool no_check;       // pscw, lock_all
    bool asserts;        // fence: says what it can
    std::vector<std::vector<bool>> access;  // pscw: [origin][target]
    std::vector<Area> areas;
    std::vector<Operation> operations;
    std::vector<Visit> visits;
    bool stores = false;  // some rank stores into its window before the phase
};

struct Round {
    std::uint64_t key = 0;
    int size = 0;  // ranks
    WindowPlan window;
    std::vector<Phase> phases;
};

// `key`: of the round. one_node: whether memory can be shared. threads: that issue operations.
// operations: about so many per rank.
Round make_round(const Options& options, std::uint64_t key, int size, bool one_node, int threads,
                 std::uint64_t operations);

// Draws a number, mostly small.
std::size_t draw_bytes(pattern::Random& random, std::size_t most);

// areas.cc: fills a phase whose epoch is decided.
void plan_operations(const Options& options, const Round& round, int threads, std::uint64_t operations,
                     pattern::Random& random, Phase& phase);

// names.cc
const char* name_of(WindowKind kind);
const char* name_of(EpochKind kind);
const char* name_of(AreaKind kind);
std::string describe(const Phase& phase, std::size_t operation);
std::string describe(const Round& round);

}  // namespace rma_storm
