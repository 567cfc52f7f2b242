// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of the processes of a job, each with at most one partner to send to and one
// to receive from. The algorithms are those of the dissertation's MPI (8.4.2; Thakur
// and Gropp).
//
//   ring       displaced ring: in step j rank i sends to rank i + j
//   alltoall   pairwise exchange; the partner is i XOR j for a power of two of
//              ranks, else the displaced ring
//   allgather  the steps of coll/rdmaag (coop/coll/steps.h): recursive doubling,
//              Bruck, ring or neighbour exchange. The blocks of a step are one
//              message, also if they wrap from the last block to the first.
//   allreduce  a power of two of ranks: reduce-scatter by pairwise exchange, then
//              allgather by the ring; else recursive doubling over the largest power
//              of two, after each surplus rank has sent its vector to a neighbour
//   shifts     steps of the displaced ring in random order, endlessly: traffic of a
//              neighbour job
//
// Units: bytes. Threading: pure functions. Errors: pattern_named() and algorithm_named()
// return nothing for an unknown name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "coop/coll/steps.h"
#include "sim/topology.h"

namespace coop::sim {

enum class Pattern : std::uint8_t { kRing, kAlltoall, kAllgather, kAllreduce, kShifts };

std::optional<Pattern> pattern_named(std::string_view name);
const char* name(Pattern pattern) noexcept;
std::optional<coll::Algorithm> algorithm_named(std::string_view name);

// When a receiver tells where the bytes of an allgather are to be written.
enum class Announce : std::uint8_t {
    kStep,  // rendezvous in each step: point-to-point messages
    kCall,  // once per call, to each rank that writes to it: RDMA
};

struct Workload {
    Pattern pattern = Pattern::kAlltoall;
    std::uint32_t ranks = 2;
    std::uint64_t bytes = 65536;  // alltoall, allgather: of a block; allreduce: of the vector; ring: of a message
    std::uint32_t iterations = 1;
    std::uint32_t messages = 1;   // messages at once in each step
    std::uint64_t seed = 1;       // for shifts
    std::uint32_t only_step = 0;  // ring: only this step; 0: all
    std::uint32_t every = 1;      // ring, alltoall, allgather by ring: only every N-th step, starting with the first
    coll::Algorithm algorithm = coll::Algorithm::kRing;  // of allgather; fits the number of ranks
    Announce announce = Announce::kStep;                 // of allgather
    bool await_sends = false;                            // allgather, kCall: each step waits for its sends
    std::uint64_t copy_below = 0;                        // allgather: steps of at most this size go through buffers

    bool has_direct_steps() const noexcept { return announce == Announce::kCall || copy_below != 0; }
};

struct Step {
    std::uint32_t to = kNone, from = kNone;  // ranks; kNone: no partner
    std::uint64_t bytes = 0;                 // of each message to send
    std::uint64_t reduced_bytes = 0;         // to be reduced by the CPU afterwards
    bool copied = false;                     // through registered buffers at both ends
    bool direct = false;                     // without a handshake
};

std::uint32_t steps_of(const Workload& workload) noexcept;  // of one iteration
// `step` counts from 0 in each iteration.
Step step_of(const Workload& workload, std::uint32_t rank, std::uint32_t iteration, std::uint32_t step) noexcept;

}  // namespace coop::sim
