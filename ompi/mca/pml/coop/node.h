// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of this node: our board, theirs, and whether the kernel lets us
// copy from and to them. (coop/rndv/board.h, coop/node/neighbour.h)
//
// Threading: opened before the first thread; neighbour_of() takes Module::lock.
#pragma once

#include "module.h"

#include "coop/node/neighbour.h"
#include "coop/rndv/board.h"
#include "coop/rndv/bounce.h"
#include "coop/rndv/hca_load.h"

namespace coop::pml {

// What each process shares with its node.
struct NodeMemory {
    rndv::Board board;
    rndv::BounceBuffers bounces;
    rndv::HcaLoads loads;  // that of the first process of the job on the node serves all
};

// Another process of this node; lives as long as ours.
struct Neighbour {
    node::SharedMemory memory;
    rndv::Board* board = nullptr;  // null: we cannot share memory with it
    rndv::BounceBuffers* bounces = nullptr;  // likewise
    rndv::HcaLoads* loads = nullptr;         // likewise
    std::int32_t pid = 0;
    int copy_error = 0;            // errno of the copy that was tried; 0: it worked, or need not
};

// What our card says of us (modex.cc).
struct BoardCard {
    std::int32_t pid;
    std::int32_t fd;               // -1: no board
    std::uint64_t nonce;
    std::uint64_t nonce_address;   // where a copy can be tried
};

// Makes our board. Where there is no memory for it, we do without.
void open_node() noexcept;
void close_node() noexcept;
BoardCard board_card() noexcept;

rndv::Board* my_board() noexcept;  // null: none
rndv::BounceBuffers* my_bounces() noexcept;  // likewise

// From now on the large operations on the node's HCAs are counted on its load board, where all can see it.
void count_hca_loads() noexcept;

// Null: not on this node, or ourselves. The first call tries a copy.
Neighbour* neighbour_of(ompi_proc_t* proc) noexcept;

// How a board names a process.
inline std::uint64_t name_of(const ompi_proc_t* proc) noexcept {
    return (std::uint64_t{proc->super.proc_name.jobid} << 32) | proc->super.proc_name.vpid;
}

// More processes on this node than cores.
bool is_crowded() noexcept;

}  // namespace coop::pml
