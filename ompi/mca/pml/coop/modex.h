// SPDX-License-Identifier: BSD-3-Clause
//
// What each process tells every other one at start, through PMIx.
#pragma once

#include "node.h"

namespace coop::pml {

void publish_modex() noexcept;

// Ends the job, and says so, if the peer is of another architecture, or runs a version that does not understand ours.
void check_version(ompi_proc_t* proc) noexcept;

// What the peer says of its board, and whether the kernel lets it copy. False: it says nothing.
bool published_board(ompi_proc_t* proc, BoardCard& board, bool& copies) noexcept;

// Rank 0 of our job may copy from itself: what denies it to others is then not
// denied to everybody.
bool rank_0_can_copy() noexcept;

// The peer's pml_coop_report.
std::int64_t published_report(ompi_proc_t* proc) noexcept;

}  // namespace coop::pml
