// SPDX-License-Identifier: BSD-3-Clause
//
// The queue pairs of rails: made, with the receive buffers that they need, and
// connected to the peer's.
//
// Threading: rails are made under the lock of Connections, by the application's
// thread or by the one that answers peers; no other thread uses a rail before it
// is part of a channel. open_receives() is called before that thread starts.
// Errors: printed as a sentence; the caller gets a null pointer or false.
#pragma once

#include <cstdint>
#include <memory>

#include "coop/path/connect.h"
#include "endpoint.h"

namespace coop::ib {

struct Module;

// Posts the buffers of the HCA's shared receive queue. False: they cannot be registered (errno says why).
bool open_receives(Module& m, std::uint32_t hca);

// In INIT, with its own receive buffers where the HCA has no shared receive queue. Null: the rail is not used.
std::unique_ptr<Rail> make_rail(Module& m, const path::PathChoice& path, const path::PortRecord& remote);

// To RTR and RTS. False: the rail is not used.
bool connect_rail(Module& m, Rail& rail, const path::PathChoice& path, const path::PortRecord& remote,
                  const path::RailEnds& ends);

}  // namespace coop::ib
