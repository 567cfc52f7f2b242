// SPDX-License-Identifier: BSD-3-Clause
//
// Verbs work requests, built from a fragment or a stripe for one rail. Channel::build()
// is here.
//
// Threading: under Module::lock. Errors: none.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "endpoint.h"

namespace coop::ib {

// An RDMA write into the peer's ring, at `address`.
void fill_ring_write(const Outbox& ring, std::uint64_t address, const Rail& rail, ibv_send_wr& wr);

}  // namespace coop::ib
