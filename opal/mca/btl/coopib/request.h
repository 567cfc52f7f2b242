// SPDX-License-Identifier: BSD-3-Clause
//
// Turns a work request into a write to the peer's ring. request.cc also defines
// Channel::build(), which builds the work request of a fragment or a stripe for one rail.
//
// Threading: under Module::lock. Errors: none.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "endpoint.h"

namespace coop::ib {

// Makes `wr` an RDMA write to `address` in the peer's ring.
void fill_ring_write(const Outbox& ring, std::uint64_t address, const Rail& rail, ibv_send_wr& wr);

}  // namespace coop::ib
