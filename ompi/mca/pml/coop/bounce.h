// SPDX-License-Identifier: BSD-3-Clause
//
// Blocking sends through a bounce buffer: they need no request and do not wait for the receiver. (coop/rndv/bounce.h)
#pragma once

#include "comm.h"

namespace coop::pml {

// Sends a message that exceeds the eager limit through a bounce buffer. Returns false, and has not sent it, if it does
// not exceed the limit, earlier sends wait, this process shares no memory, another protocol is chosen, the peer belongs
// to another job, no buffer is free, or the transport has no room for the RTS.
bool send_by_bounce(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int tag,
                    SequenceNumber& sequence, ompi_communicator_t* comm, rndv::SendCall call) noexcept;

// Empties the bounce buffer, if any, of a message that no receive will take.
void empty_bounce(const Peer& peer, const wire::RtsHeader& h) noexcept;

}  // namespace coop::pml
