// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of an allgather: in each step a process sends blocks that it has to one
// process and receives blocks that it lacks from one process. After the last step it
// has all blocks. (RDMA based allgather, section 2.3)
//
//     algorithm            processes p     steps          blocks per step    p = 8, rank 0 sends
//     recursive doubling   a power of two  log2 p         1, 2, 4, …         to 1: 0, to 2: 0-1, to 4: 0-3
//     Bruck                any             ceil(log2 p)   1, 2, 4, … rest    to 7: 0, to 6: 0-1, to 4: 0-3
//     ring                 any             p - 1          1                  to 1: 0, to 1: 7, to 1: 6, …
//     neighbour exchange   even            p / 2          1, then 2          to 1: 0, to 7: 0-1, to 1: 6-7, …
//
// Block i is the one that rank i contributes. A range of blocks may wrap from the last
// block to block 0. Bruck's algorithm is used in a form that receives each block in its
// final place, so no rotation follows; a range that wraps takes two transfers.
//
// Units: ranks, steps, blocks. Pure; a rank or step out of range is the caller's error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coop/base/export.h"

namespace coop::coll {

enum class Algorithm : std::uint8_t { kRecursiveDoubling, kBruck, kRing, kNeighbour };
constexpr std::size_t kAlgorithms = 4;

// The blocks first, first + 1, …, counted modulo the number of processes.
struct Range {
    std::uint32_t first;
    std::uint32_t count;
    bool operator==(const Range&) const = default;
};

struct Step {
    std::uint32_t to;
    std::uint32_t from;
    Range send;
    Range receive;
    bool operator==(const Step&) const = default;
};

// The name that parameters and reports use: doubling, bruck, ring, neighbour.
COOP_EXPORT const char* text(Algorithm algorithm) noexcept;

// Whether the algorithm works for this number of processes; at least 1.
COOP_EXPORT bool fits(Algorithm algorithm, std::uint32_t processes) noexcept;
COOP_EXPORT std::uint32_t count_steps(Algorithm algorithm, std::uint32_t processes) noexcept;
COOP_EXPORT Step step_of(Algorithm algorithm, std::uint32_t processes, std::uint32_t rank, std::uint32_t step) noexcept;

// A ring in another order than that of the ranks; for example, node by node, so that only one process of each node sends
// to another node.
struct RingOrder {
    std::span<const std::uint32_t> rank_at{};  // by position; empty: the order of the ranks
    std::uint32_t position = 0;                // of this process
};
// For an order that is not empty.
COOP_EXPORT Step ring_step_of(const RingOrder& order, std::uint32_t step) noexcept;

// Steps with the same sender use the same announcement of the receiver's memory: one in a ring, two between neighbours,
// one for each step otherwise.
constexpr std::uint32_t announcement_of(Algorithm algorithm, std::uint32_t step) noexcept {
    return algorithm == Algorithm::kRing ? 0 : algorithm == Algorithm::kNeighbour ? step % 2 : step;
}
COOP_EXPORT std::uint32_t count_announcements(Algorithm algorithm, std::uint32_t processes) noexcept;

}  // namespace coop::coll
