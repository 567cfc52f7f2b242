// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of this node: our board, theirs, and whether the kernel lets us
// copy from and to them. (coop/rndv/board.h, coop/node/neighbour.h)
//
// Threading: opened before the first thread.
#pragma once

#include <memory>

#include "module.h"

#include "coop/node/neighbour.h"
#include "coop/node/retry.h"
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

// What our card says of us (modex.cc).
struct BoardCard {
    std::int32_t pid;
    std::int32_t fd;               // -1: no memory to share
    std::uint64_t nonce;
    std::uint64_t nonce_address;   // where a copy can be tried
};

// Another process of this node; lives as long as ours.
struct Neighbour {
    BoardCard card{};
    int copy_error = 0;                         // errno of the copy that was tried; 0: it worked, or need not
    std::atomic<NodeMemory*> memory{nullptr};   // what it shares; null: it is not mapped here, look_again() may change that
    std::atomic<bool> sees_us{false};           // it has said that it has mapped ours: it can read our bounce buffers
    node::SharedMemory mapping;                 // under Module::lock
    node::Retry retry;                          // of mapping it; likewise

    bool is_mapped() const noexcept { return memory.load(std::memory_order_acquire) != nullptr; }
    rndv::Board& board() const noexcept { return memory.load(std::memory_order_acquire)->board; }  // it is mapped
    // Tries again to map its memory, now and then, where that has failed so far.
    void look_again() noexcept {
        if (!is_mapped() && card.fd >= 0) [[unlikely]] try_to_map();
    }

private:
    void try_to_map() noexcept;
};

// Makes the memory that we share. Where the system gives none, we do without.
void open_node() noexcept;
void close_node() noexcept;
BoardCard board_card() noexcept;
// Says, once on a node and for all nodes where it is the same, that no memory can be shared.
void report_missing_memory() noexcept;

rndv::Board* my_board() noexcept;  // null: none
rndv::BounceBuffers* my_bounces() noexcept;  // likewise

// From now on the large operations on the node's HCAs are counted on its load board, where all can see it.
void count_hca_loads() noexcept;
void stop_counting_hca_loads() noexcept;  // before the transports end

// Null: not on this node, or ourselves. Maps the memory of the process and tries a copy from it.
std::unique_ptr<Neighbour> make_neighbour(ompi_proc_t* proc) noexcept;

// How a board names a process.
inline std::uint64_t name_of(const ompi_proc_t* proc) noexcept {
    return (std::uint64_t{proc->super.proc_name.jobid} << 32) | proc->super.proc_name.vpid;
}

// The processes of the job on this node are more than the CPUs that they may run on, or than the time on CPUs that their control groups leave.
bool is_crowded() noexcept;

}  // namespace coop::pml
