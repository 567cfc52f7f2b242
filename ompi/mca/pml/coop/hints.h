// SPDX-License-Identifier: BSD-3-Clause
//
// Settings that applications and tools change while the job runs: parameters, written through MPI_T, and the
// communicator info keys coop_protocol and coop_overlap. (Cooperative Rendezvous Protocols, section VI: future work)
//
// Threading: any; a message that starts while a setting changes uses the old or the new value. Errors: an invalid value
// is reported once and ignored.
#pragma once

#include "comm.h"

namespace coop::pml {

enum class Overlap : std::int8_t { kAuto, kYes, kNo };

// Applies the parameters that were written since the last call. Called for each message and receive of more than 4 KiB; they
// concern no shorter ones.
void take_in_written_parameters() noexcept;

// Subscribes to the info keys of a communicator.
void subscribe_hints(ompi_communicator_t* comm) noexcept;

// The settings for messages of a communicator: its own hint if it has one, otherwise the parameter.
rndv::Wish wish_for(ompi_communicator_t* comm) noexcept;
rndv::SendCall call_for(ompi_communicator_t* comm, rndv::SendCall call) noexcept;
rndv::RecvCall call_for(ompi_communicator_t* comm, rndv::RecvCall call) noexcept;

}  // namespace coop::pml
