// SPDX-License-Identifier: BSD-3-Clause
//
// What the processes of a job do: steps, each with at most one partner to send to
// and one to receive from, as the algorithms have it that the dissertation's MPI
// used (8.4.2; Thakur and Gropp).
//
//   ring       displaced ring (3): in step j rank i sends to i + j
//   alltoall   pairwise exchange; the partner is i XOR j for a power of two of
//              ranks, else the displaced ring
//   allgather  ring: each step one block to the right
//   allreduce  a power of two: reduce-scatter by pairwise exchange, then the ring;
//              else recursive doubling, with the ranks above the power of two
//              folded in
//   shifts     steps of the displaced ring in random order, without an end: what a
//              neighbour in the subnet may do
//
// Units: bytes. Threading: pure functions. Errors: a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/topology.h"

namespace coop::sim {

enum class Pattern : std::uint8_t { kRing, kAlltoall, kAllgather, kAllreduce, kShifts };

std::optional<Pattern> pattern_named(std::string_view name);
const char* name(Pattern pattern) noexcept;

struct Workload {
    Pattern pattern = Pattern::kAlltoall;
    std::uint32_t ranks = 2;
    std::uint64_t bytes = 65536;      // alltoall, allgather: of a block; allreduce: of the vector; ring: of a message
    std::uint32_t iterations = 1;
    std::uint32_t messages = 1;       // of each step, at once
    std::uint64_t seed = 1;           // of shifts
    std::uint32_t only_step = 0;      // of the ring: this one alone; 0: all
    std::uint32_t every = 1;          // of the ring and alltoall: each so-manieth step, from the first on
};

struct Step {
    std::uint32_t to = kNone, from = kNone;  // ranks; kNone: nobody
    std::uint64_t bytes = 0;                 // of each message sent
    std::uint64_t reduced_bytes = 0;         // worked on by the CPU afterwards
};

std::uint32_t steps_of(const Workload& workload) noexcept;  // of one iteration
// `step` counts from 0 within `iteration`.
Step step_of(const Workload& workload, std::uint32_t rank, std::uint32_t iteration, std::uint32_t step) noexcept;

}  // namespace coop::sim
