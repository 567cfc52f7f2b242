// SPDX-License-Identifier: BSD-3-Clause
//
// The owner's side of the receive requests of a QP or an SRQ: puts them into the
// ring in shared memory. Processes that deliver messages take them, under the lock
// of the QP or SRQ; putting takes no lock but the caller's own.
#pragma once

#include "fabric/shm/receive_ring.h"
#include "fabric/verbs/exports.h"

namespace coop::fabric {

// Allocates a ring with at least one entry, even for a depth of 0. Returns false if the subnet has no room.
bool make_ring(const Segment& subnet, ReceiveRing& ring, std::uint32_t depth, std::uint32_t most_sges);

// Puts a list of requests. At the first that cannot be posted it returns an errno and sets `bad` to that request.
int post_receives(const Segment& subnet, ReceiveRing& ring, ibv_recv_wr* request, ibv_recv_wr** bad);

}  // namespace coop::fabric
