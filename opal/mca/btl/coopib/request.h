// SPDX-License-Identifier: BSD-3-Clause
//
// Verbs work requests, built from a fragment or a stripe for one rail. The caller
// has zeroed the request, linked its one scatter/gather entry and set its id.
//
// Threading: under Module::lock. Errors: none.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "endpoint.h"

namespace coop::ib {

// An RDMA write into the peer's ring, at `address`.
void fill_ring_write(const Outbox& ring, std::uint64_t address, const Rail& rail, ibv_send_wr& request);

// A send, or a ring write if the fragment has a place in the ring.
void fill_send(const Fragment& fragment, const Rail& rail, ibv_send_wr& request, ibv_sge& sge);

// A write, a read or an atomic operation.
void fill_stripe(const StripeWork& stripe, const Rail& rail, ibv_send_wr& request, ibv_sge& sge);

}  // namespace coop::ib
