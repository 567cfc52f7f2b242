// SPDX-License-Identifier: BSD-3-Clause
//
// The owner's side of the receive requests of a QP or an SRQ: putting them into
// the ring in shared memory. Who delivers takes them, under the lock of the QP or
// the SRQ; putting takes no lock but the caller's own.
#pragma once

#include "fabric/shm/receive_ring.h"
#include "fabric/verbs/exports.h"

namespace coop::fabric {

// At least one place is reserved, also for a depth of 0. False: there is no room on the subnet.
bool make_ring(const Segment& subnet, ReceiveRing& ring, std::uint32_t depth, std::uint32_t most_sges);

// Puts a list of requests; at the first that cannot be, its errno, and it in `bad`.
int post_receives(const Segment& subnet, ReceiveRing& ring, ibv_recv_wr* request, ibv_recv_wr** bad);

}  // namespace coop::fabric
