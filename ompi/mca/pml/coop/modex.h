// SPDX-License-Identifier: BSD-3-Clause
//
// The data that each process publishes to all others at start, through PMIx.
#pragma once

#include "node.h"

namespace coop::pml {

void publish_modex() noexcept;

// Ends the job with an error if the peer has another architecture or runs an incompatible version.
void check_version(ompi_proc_t* proc) noexcept;

// Reads where the peer's board is, and whether the kernel lets the peer copy. Returns false if it published nothing.
bool published_board(ompi_proc_t* proc, BoardCard& board, bool& copies) noexcept;

// Reads where the peer receives what neighbours send through the lane.
LaneCard published_lane(ompi_proc_t* proc) noexcept;

// True if the kernel lets rank 0 of our job copy. If not, copies are probably denied on every node, and rank 0 alone
// reports it.
bool rank_0_can_copy() noexcept;

// Returns the peer's value of pml_coop_report; 0 if it published nothing.
std::int64_t published_report(ompi_proc_t* proc) noexcept;

}  // namespace coop::pml
