// SPDX-License-Identifier: BSD-3-Clause
//
// Which algorithm an allgather takes, unless trials find a faster way (tuner.h). Everything that the
// choice depends on is the same in all processes of the communicator, so all choose the same.
//
// Units: bytes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coop/base/export.h"
#include "coop/coll/steps.h"

namespace coop::coll {

enum class Wish : std::uint8_t { kAuto, kDoubling, kBruck, kRing, kNeighbour, kNode };

struct Situation {
    std::uint32_t processes = 0;
    std::uint64_t bytes = 0;  // of all blocks
    Wish wish = Wish::kAuto;
    std::uint64_t ring_min = 0;  // mean length of a block from which on the ring may be taken
    // Only tuner.h looks at these.
    bool shared_memory = false;  // blocking calls can go through shared memory
    bool one_node = false;       // all processes are on one node
};

enum class Reason : std::uint8_t {
    kAsked,       // the parameter names the algorithm
    kPowerOfTwo,  // recursive doubling has the fewest steps and moves long ranges
    kAnyNumber,   // Bruck: the fewest steps for a number that is no power of two
    kLong,        // ring: the blocks are long, so steps do not matter, but neighbours are near
    // Not by choose(), but by tuner.h:
    kSharedMemory,  // processes of the communicator share nodes, and memory there
    kTuning,        // tried, to measure its time
    kMeasured,      // clearly faster than the usual way (tuner.h)
};
constexpr std::size_t kReasons = 7;
// The word that reports and performance variables use: asked, power-of-two, …
COOP_EXPORT const char* text(Reason reason) noexcept;

struct Choice {
    Algorithm algorithm;
    Reason reason;
    bool operator==(const Choice&) const = default;
};

constexpr std::uint32_t kManyProcesses = 32;  // more than these use the ring for long results (section 4.3)

// For at least two processes.
COOP_EXPORT Choice choose(const Situation& situation) noexcept;

}  // namespace coop::coll
