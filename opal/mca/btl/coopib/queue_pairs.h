// SPDX-License-Identifier: BSD-3-Clause
//
// Makes the queue pairs of rails, with the receive buffers that they need, and connects
// them to the peer's.
//
// Threading: rails are made under the lock of Connections, by the application's
// thread or by the thread that answers peers; no other thread uses a rail before it
// is part of a channel. open_receives() is called before the thread that answers
// peers starts. Errors: make_rail() and connect_rail() print a message, and the
// caller gets a null pointer or false. If buffers cannot be registered, open_receives()
// leaves the message to its caller.
#pragma once

#include <cstdint>
#include <memory>

#include "coop/path/connect.h"
#include "endpoint.h"

namespace coop::ib {

struct Module;

// Posts the buffers of the HCA's shared receive queue. Returns false if they cannot be registered (errno is set).
bool open_receives(Module& m, std::uint32_t hca);

// Makes a rail whose queue pair is in state INIT, with its own receive buffers if the HCA has no shared receive queue.
// Returns null if the rail cannot be used.
std::unique_ptr<Rail> make_rail(Module& m, const path::PathChoice& path, const path::PortRecord& remote);

// The acknowledgement timer of the rails to this peer, as queue pairs have it.
std::uint8_t timeout_for(const Module& m, const path::PortList& remote);

// Changes the queue pair to RTR and RTS. Returns false if the rail cannot be used.
bool connect_rail(Module& m, Rail& rail, const path::PathChoice& path, const path::PortRecord& local,
                  const path::PortRecord& remote, const path::RailEnds& ends, std::uint8_t timeout);

}  // namespace coop::ib
