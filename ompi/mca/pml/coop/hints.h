// SPDX-License-Identifier: BSD-3-Clause
//
// What applications and tools tell us while the job runs: parameters written
// through MPI_T, and the communicator info keys coop_protocol and coop_overlap.
// (Cooperative Rendezvous Protocols, section VI: future work)
//
// Threading: any; a message that starts while a hint changes goes by the old or
// by the new one. Errors: a value that is not allowed is named once and ignored.
#pragma once

#include "comm.h"

namespace coop::pml {

enum class Overlap : std::int8_t { kAuto, kYes, kNo };

// Takes in what was written to parameters since the last call.
void take_in_written_parameters() noexcept;

// Makes the info keys of a communicator known.
void subscribe_hints(ompi_communicator_t* comm) noexcept;

// What holds for messages of a communicator: its own hint, or the parameter.
rndv::Wish wish_for(ompi_communicator_t* comm) noexcept;
rndv::SendCall call_for(ompi_communicator_t* comm, rndv::SendCall call) noexcept;
rndv::RecvCall call_for(ompi_communicator_t* comm, rndv::RecvCall call) noexcept;

}  // namespace coop::pml
