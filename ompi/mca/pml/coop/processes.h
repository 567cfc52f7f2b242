// SPDX-License-Identifier: BSD-3-Clause
//
// What this process knows of the processes that it sends to, shared by all communicators. Processes of our own job are
// kept until the end, because their number is limited. Those of other jobs (MPI_Comm_spawn, MPI_Comm_connect) are
// forgotten with the last communicator that has sent to them, because a job may spawn again and again.
//
// Threading: any thread; takes Module::lock. Ownership: processes.cc owns the records.
#pragma once

#include <memory>
#include <utility>

#include "coop/rndv/pace.h"
#include "coop/rndv/packet_trial.h"
#include "node.h"

namespace coop::pml {

struct Process {
    std::uint64_t name;                    // name_of()
    std::unique_ptr<Neighbour> neighbour;  // null: on another node, or ourselves
    rndv::Pace pace;                       // of messages to another node; changes under Module::lock
    rndv::PacketTrials packet_trials;      // the same

    Process(std::uint64_t its_name, std::unique_ptr<Neighbour> its_neighbour) noexcept
        : name(its_name), neighbour(std::move(its_neighbour)) {}
};

// Returns the record of a process; the caller holds it until leave(). Ends the job if the process has another
// architecture or runs an incompatible version.
Process& meet(ompi_proc_t* proc) noexcept;
void leave(Process& process) noexcept;

bool is_of_our_job(const ompi_proc_t* proc) noexcept;

void forget_processes() noexcept;  // at the end, when no record is held

}  // namespace coop::pml
