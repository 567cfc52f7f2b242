// SPDX-License-Identifier: BSD-3-Clause
//
// What this process knows of others that it sends to, once for all communicators. Processes of our own job are kept until the end:
// there are only so many. Those of other jobs (MPI_Comm_spawn, MPI_Comm_connect) are forgotten with the last communicator that has
// sent to them: a job may spawn for ever.
//
// Threading: any thread; takes Module::lock. Ownership: here.
#pragma once

#include <memory>

#include "node.h"

namespace coop::pml {

struct Process {
    std::uint64_t name;                    // name_of()
    std::unique_ptr<Neighbour> neighbour;  // null: on another node, or ourselves
};

// The record of a process whose build understands ours (the job ends if not). The caller uses it until leave().
Process& meet(ompi_proc_t* proc) noexcept;
void leave(Process& process) noexcept;

void forget_processes() noexcept;  // at the end: nobody uses any

}  // namespace coop::pml
