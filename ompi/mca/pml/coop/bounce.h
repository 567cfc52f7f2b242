// SPDX-License-Identifier: BSD-3-Clause
//
// Blocking sends by a bounce buffer: without a request, and without waiting.
// (coop/rndv/bounce.h)
#pragma once

#include "comm.h"

namespace coop::pml {

// A message beyond the eager limit, if the choice falls on a bounce buffer, one
// is free and the transport has room for the RTS. False: as for any other message.
bool send_by_bounce(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int tag, SequenceNumber& sequence,
                    ompi_communicator_t* comm, rndv::SendCall call) noexcept;

}  // namespace coop::pml
